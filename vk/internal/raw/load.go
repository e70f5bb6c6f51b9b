package raw

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"leat/vk/dl"
)

// Loader is the opened Vulkan loader with the commands that need no instance.
type Loader struct {
	Library string // the name it was found under

	handle          uintptr
	getInstanceProc uintptr
	fn              [gblCount]uintptr
}

// InstanceFuncs holds the commands of one instance and its physical devices.
type InstanceFuncs struct {
	getDeviceProc uintptr
	fn            [insCount]uintptr
}

// DeviceFuncs holds the commands of one device, its queues and command buffers,
// as the driver gives them, without the loader's dispatch in between.
type DeviceFuncs struct {
	fn [devCount]uintptr
}

// command is what a table knows of one of its commands.
type command struct {
	name     string
	aliases  []string // names it had in extensions
	required bool     // part of Vulkan 1.2
}

// LoaderError says that no Vulkan loader could be opened.
type LoaderError struct {
	Names  []string // tried, in order
	Causes []error  // one for each name
	asked  bool     // the name was the caller's
}

func (e *LoaderError) Error() string {
	var b strings.Builder
	b.WriteString("open the Vulkan loader: no usable library")
	for i, name := range e.Names {
		fmt.Fprintf(&b, "; %s: %v", name, e.Causes[i])
	}
	return b.String()
}

// Unwrap gives the cause for each name.
func (e *LoaderError) Unwrap() []error { return e.Causes }

// Hint says what to install, or what to name.
func (e *LoaderError) Hint() string {
	if e.asked {
		return "name the Vulkan loader's own file, as " + libraryNames[0] + ", or none to use the system's"
	}
	return loaderHint
}

var opened struct {
	sync.Mutex
	loaders map[string]*Loader // by the name asked for
}

// Load opens the system's Vulkan loader, once; after a failure (a [*LoaderError])
// it may be tried again. The library stays open as long as the process lives.
func Load() (*Loader, error) { return LoadFrom("") }

// LoadFrom is Load of the library with that path or name; "": the system's.
func LoadFrom(name string) (*Loader, error) {
	opened.Lock()
	defer opened.Unlock()
	if l := opened.loaders[name]; l != nil {
		return l, nil
	}
	names := libraryNames
	if name != "" {
		names = []string{name}
	}
	l, err := open(names)
	if err != nil {
		err.asked = name != ""
		return nil, err
	}
	if opened.loaders == nil {
		opened.loaders = map[string]*Loader{}
	}
	opened.loaders[name] = l
	return l, nil
}

// open returns the first of the named libraries that is a Vulkan loader.
func open(names []string) (*Loader, *LoaderError) {
	failed := &LoaderError{Names: names}
	for _, name := range names {
		l, err := openAs(name)
		if err == nil {
			return l, nil
		}
		failed.Causes = append(failed.Causes, err)
	}
	return nil, failed
}

func openAs(name string) (*Loader, error) {
	lib, err := dl.Open(name)
	if err != nil {
		return nil, err
	}
	l := &Loader{Library: name, handle: lib}
	if l.getInstanceProc, err = dl.Symbol(lib, "vkGetInstanceProcAddr"); err == nil {
		err = lookUp(l.fn[:], globalCommands[:], l.getInstanceProc, 0)
	}
	if err != nil {
		return nil, errors.Join(err, dl.Close(lib))
	}
	return l, nil
}

// File is the path of the file the loader came from; "" where the system does not say.
func (l *Loader) File() string { return libraryFile(l.handle, l.getInstanceProc) }

// TryLibrary opens a driver's library, as the loader would, and leaves it open:
// drivers are not made to be closed and opened again by several hands.
func TryLibrary(name string) error {
	_, err := dl.Open(name)
	return err
}

// LoadInstance looks up the commands of i.
func (l *Loader) LoadInstance(i Instance) (*InstanceFuncs, error) {
	f := &InstanceFuncs{getDeviceProc: procAddr(l.getInstanceProc, uintptr(i), "vkGetDeviceProcAddr")}
	if f.getDeviceProc == 0 {
		return nil, errors.New("look up the commands of a Vulkan instance: vkGetDeviceProcAddr is missing")
	}
	if err := lookUp(f.fn[:], instanceCommands[:], l.getInstanceProc, uintptr(i)); err != nil {
		return nil, fmt.Errorf("look up the commands of a Vulkan instance: %w", err)
	}
	return f, nil
}

// LoadDevice looks up the commands of d.
func (f *InstanceFuncs) LoadDevice(d Device) (*DeviceFuncs, error) {
	t := &DeviceFuncs{}
	if err := lookUp(t.fn[:], deviceCommands[:], f.getDeviceProc, uintptr(d)); err != nil {
		return nil, fmt.Errorf("look up the commands of a Vulkan device: %w", err)
	}
	return t, nil
}

// lookUp fills fn with the addresses of commands, by either vkGet*ProcAddr.
func lookUp(fn []uintptr, commands []command, getProc, object uintptr) error {
	var missing []string
	for i, c := range commands {
		fn[i] = procAddr(getProc, object, c.name)
		for _, alias := range c.aliases {
			if fn[i] == 0 {
				fn[i] = procAddr(getProc, object, alias)
			}
		}
		if fn[i] == 0 && c.required {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing %s, which Vulkan 1.2 has", strings.Join(missing, ", "))
	}
	return nil
}

// procAddr calls vkGetInstanceProcAddr or vkGetDeviceProcAddr; 0 if absent.
func procAddr(getProc, object uintptr, name string) uintptr {
	c := newCall()
	c.words[0] = object
	c.ptr(1, Ptr(CString(name)))
	return c.do(getProc, 2)
}

// Has reports whether the loader has the command, by its C name.
func (f *Loader) Has(name string) bool { return has(f.fn[:], globalCommands[:], name) }

// Has reports whether the instance has the command, by its C name.
func (f *InstanceFuncs) Has(name string) bool { return has(f.fn[:], instanceCommands[:], name) }

// Has reports whether the device has the command, by its C name.
func (f *DeviceFuncs) Has(name string) bool { return has(f.fn[:], deviceCommands[:], name) }

func has(fn []uintptr, commands []command, name string) bool {
	for i, c := range commands {
		if c.name == name {
			return fn[i] != 0
		}
	}
	return false
}
