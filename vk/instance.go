package vk

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"leat/vk/internal/raw"
)

const (
	validationLayer = "VK_LAYER_KHRONOS_validation"
	extDebugUtils   = "VK_EXT_debug_utils"
	extPortability  = "VK_KHR_portability_enumeration"
)

// InstanceOptions tells Open what to turn on. The zero value is for production.
type InstanceOptions struct {
	LoaderPath string       // of the Vulkan loader; "": the system's
	Validate   bool         // load the validation layer, name objects, count its messages
	Logger     *slog.Logger // nil: silent
}

// Instance is the entrance to Vulkan; it is safe for use by several goroutines.
type Instance struct {
	loader    *raw.Loader
	fn        *raw.InstanceFuncs
	handle    raw.Instance
	log       *slog.Logger
	debug     bool // debug-utils is on
	callback  *raw.MessageCallback
	messenger raw.DebugUtilsMessengerEXT
	layer     Version // of the specification the validation layer knows; 0: no layer
	messages  atomic.Int64
	devices   []*PhysicalDevice

	mu     sync.Mutex
	opened []*Device
	closed bool
}

// Open loads the Vulkan loader and finds the devices. Its error has a Hint
// where something is not installed, and is ErrNoDriver where nothing works.
func Open(o InstanceOptions) (*Instance, error) {
	loader, err := openLoader(o.LoaderPath)
	if err != nil {
		return nil, err
	}
	i := &Instance{loader: loader, log: o.Logger}
	if i.log == nil {
		i.log = slog.New(slog.DiscardHandler)
	}
	if err := i.create(o.Validate); err != nil {
		i.Close()
		return nil, err
	}
	if err := i.findDevices(); err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

func (i *Instance) create(validate bool) error {
	exts, err := i.extensions()
	if err != nil {
		return err
	}
	info := &raw.InstanceCreateInfo{
		SType: raw.StructureTypeInstanceCreateInfo,
		PApplicationInfo: &raw.ApplicationInfo{
			SType:            raw.StructureTypeApplicationInfo,
			PApplicationName: raw.CString("leat"),
			PEngineName:      raw.CString("leat"),
			ApiVersion:       uint32(MakeVersion(1, 2, 0)),
		},
	}
	var enable, layers []string
	if slices.Contains(exts, extPortability) { // without it the loader hides MoltenVK
		enable = append(enable, extPortability)
		info.Flags |= raw.InstanceCreateEnumeratePortabilityBitKHR
	}
	if validate {
		if err := i.findValidation(exts); err != nil {
			return err
		}
		layers, enable = append(layers, validationLayer), append(enable, extDebugUtils)
		i.callback, i.debug = raw.NewMessageCallback(i.hear), true
		info.PNext = raw.Ptr(i.messengerInfo()) // hears vkCreateInstance itself
	}
	info.EnabledExtensionCount, info.PpEnabledExtensionNames = cStrings(enable)
	info.EnabledLayerCount, info.PpEnabledLayerNames = cStrings(layers)
	r := i.loader.CreateInstance(info, nil, &i.handle)
	if err := check("vkCreateInstance", "", r); err != nil {
		i.handle = 0
		if r == ErrIncompatibleDriver {
			return noDriver(err)
		}
		return fmt.Errorf("open Vulkan: %w", err)
	}
	if i.fn, err = i.loader.LoadInstance(i.handle); err != nil {
		return fmt.Errorf("open Vulkan: %w", err)
	}
	if validate {
		r := i.fn.CreateDebugUtilsMessengerEXT(i.handle, i.messengerInfo(), nil, &i.messenger)
		return check("vkCreateDebugUtilsMessengerEXT", "", r)
	}
	return nil
}

func (i *Instance) findDevices() error {
	var handles []raw.PhysicalDevice
	err := enumerate("vkEnumeratePhysicalDevices", &handles, func(n *uint32, p *raw.PhysicalDevice) raw.Result {
		return i.fn.EnumeratePhysicalDevices(i.handle, n, p)
	})
	if err != nil && !errors.Is(err, ErrInitialization) { // some loaders say this for "none"
		return fmt.Errorf("open Vulkan: %w", err)
	}
	for n, h := range handles {
		p := &PhysicalDevice{Index: n, handle: h, instance: i}
		if err := p.query(); err != nil {
			return fmt.Errorf("query device %d: %w", n, err)
		}
		i.devices = append(i.devices, p)
	}
	if len(i.devices) == 0 {
		return noDriver(errors.New("the Vulkan loader finds no device"))
	}
	return nil
}

// PhysicalDevices lists the devices in the loader's order. The slice is shared.
func (i *Instance) PhysicalDevices() []*PhysicalDevice { return i.devices }

// Messages counts the warnings and errors the validation layer has sent.
func (i *Instance) Messages() int { return int(i.messages.Load()) }

// Close closes the devices that are still open, saying so in its error, then
// the instance. It may be called twice.
func (i *Instance) Close() error {
	i.mu.Lock()
	opened, closed := i.opened, i.closed
	i.opened, i.closed = nil, true
	i.mu.Unlock()
	if closed {
		return nil
	}
	var errs []error
	for _, d := range opened {
		errs = append(errs, fmt.Errorf("close Vulkan: device %q was left open", d.Physical.Name), d.Close())
	}
	if i.fn != nil {
		if i.messenger != 0 {
			i.fn.DestroyDebugUtilsMessengerEXT(i.handle, i.messenger, nil)
		}
		i.fn.DestroyInstance(i.handle, nil)
	}
	if i.callback != nil {
		i.callback.Close()
	}
	return errors.Join(errs...)
}

func (i *Instance) extensions() ([]string, error) { return instanceExtensions(i.loader) }

func extensionNames(props []raw.ExtensionProperties) []string {
	names := make([]string, len(props))
	for n := range props {
		names[n] = raw.GoString(&props[n].ExtensionName[0])
	}
	return names
}

// findValidation fails when the layer, or the extension it speaks through, is not installed.
func (i *Instance) findValidation(exts []string) error {
	layers, err := instanceLayers(i.loader)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(layers, func(l Layer) bool { return l.Name == validationLayer })
	if n < 0 {
		return &hintError{
			err:  fmt.Errorf("open Vulkan with validation: the loader knows no layer %s: %w", validationLayer, ErrLayerNotPresent),
			hint: "install it (Debian, Ubuntu: apt-get install vulkan-validationlayers; elsewhere the Vulkan SDK) or run without validation",
		}
	}
	i.layer = layers[n].SpecVersion
	if !slices.Contains(exts, extDebugUtils) {
		return fmt.Errorf("open Vulkan with validation: the loader lacks %s: %w", extDebugUtils, ErrExtensionNotThere)
	}
	return nil
}

// enumerate calls a Vulkan "count, then fill" function until the list is whole.
func enumerate[T any](call string, out *[]T, f func(n *uint32, p *T) raw.Result) error {
	for {
		var n uint32
		if err := check(call, "", f(&n, nil)); err != nil {
			return err
		}
		if *out = nil; n == 0 {
			return nil
		}
		list := make([]T, n)
		r := f(&n, &list[0])
		if err := check(call, "", r); err != nil {
			return err
		}
		if r != raw.Incomplete { // else the list grew between the two calls
			*out = list[:min(int(n), len(list))]
			return nil
		}
	}
}

// cStrings gives names as C wants them; the pointer keeps them alive.
func cStrings(names []string) (uint32, **byte) {
	if len(names) == 0 {
		return 0, nil
	}
	list := make([]*byte, len(names))
	for n, s := range names {
		list[n] = raw.CString(s)
	}
	return uint32(len(list)), &list[0]
}

func noDriver(err error) error {
	hint := "install the driver of your GPU's vendor, or Mesa (Debian, Ubuntu: apt-get install mesa-vulkan-drivers; it also has lavapipe, which computes on the CPU)"
	switch runtime.GOOS {
	case "darwin":
		hint = "install MoltenVK (brew install molten-vk), or the Vulkan SDK"
	case "windows":
		hint = "install the current driver of your GPU's vendor"
	}
	return &hintError{fmt.Errorf("open Vulkan: no driver: %w", err), ErrNoDriver, hint}
}
