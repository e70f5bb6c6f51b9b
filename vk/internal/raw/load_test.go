package raw

import (
	"errors"
	"strings"
	"testing"
)

func TestOpenErrors(t *testing.T) {
	cases := []struct {
		name  string
		names []string
		want  []string // parts of the text
	}{
		{"one absent name", []string{"libvulkan-absent.so.1"}, []string{"open the Vulkan loader", "libvulkan-absent.so.1: "}},
		{"two absent names", []string{"libvulkan-absent.so.1", "libvulkan-gone.so"}, []string{"libvulkan-absent.so.1: ", "libvulkan-gone.so: "}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l, le := open(c.names)
			if le == nil {
				t.Fatalf("open(%q) = %v; want a *LoaderError", c.names, l)
			}
			var err error = le
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("text %q lacks %q", err, part)
				}
			}
			var hinter interface{ Hint() string }
			if !errors.As(err, &hinter) || !strings.Contains(hinter.Hint(), "install") {
				t.Errorf("no hint what to install in %v", err)
			}
			if strings.Contains(err.Error(), hinter.Hint()) {
				t.Errorf("the hint is glued into the text %q", err)
			}
			if len(le.Causes) != len(c.names) {
				t.Errorf("%d causes for %d names", len(le.Causes), len(c.names))
			}
		})
	}
}

// TestOpenOtherLibrary: a library that is no Vulkan loader is passed over.
func TestOpenOtherLibrary(t *testing.T) {
	lib := buildLibrary(t)
	_, err := open([]string{lib})
	if err == nil || !strings.Contains(err.Error(), "vkGetInstanceProcAddr") {
		t.Errorf("open(%q) = %v; want an error that names vkGetInstanceProcAddr", lib, err)
	}
}

func TestLibraryNames(t *testing.T) {
	if len(libraryNames) == 0 || loaderHint == "" {
		t.Fatalf("names %q, hint %q: want some for every system", libraryNames, loaderHint)
	}
}

// A library that was asked for by name is the only one tried, and the hint is about its name.
func TestLoadFrom(t *testing.T) {
	l, err := LoadFrom("libvulkan-absent.so.1")
	var le *LoaderError
	if !errors.As(err, &le) || len(le.Names) != 1 {
		t.Fatalf("LoadFrom of an absent library = %v, %v; want a *LoaderError about one name", l, err)
	}
	if le.Hint() == loaderHint || !strings.Contains(le.Hint(), "name the Vulkan loader") {
		t.Errorf("hint is %q, want one about the name", le.Hint())
	}
	system := load(t)
	file := system.File()
	if file == "" {
		t.Skip("this system does not say which file a library came from")
	}
	named, err := LoadFrom(file)
	if err != nil {
		t.Fatal(err)
	}
	if named == system || named.Library != file || named.File() != file {
		t.Errorf("LoadFrom(%q) = %q from %q", file, named.Library, named.File())
	}
	if again, err := LoadFrom(file); err != nil || again != named {
		t.Errorf("second LoadFrom = %p, %v; want the first, %p", again, err, named)
	}
}

func TestTryLibrary(t *testing.T) {
	if err := TryLibrary(buildLibrary(t)); err != nil {
		t.Error(err)
	}
	if err := TryLibrary("libdriver-absent.so"); err == nil || !strings.Contains(err.Error(), "libdriver-absent.so") {
		t.Errorf("TryLibrary of an absent library = %v, want an error that names it", err)
	}
}

func TestLoadOnce(t *testing.T) {
	a := load(t)
	b, err := Load()
	if err != nil || a != b {
		t.Errorf("second Load = %p, %v; want the first, %p", b, err, a)
	}
	if !a.Has("vkCreateInstance") || a.Has("vkCmdDispatch") || a.Has("nonsense") {
		t.Error("Has is wrong about the loader's commands")
	}
}

func TestResultNames(t *testing.T) {
	for _, c := range []struct {
		r    Result
		want string
	}{
		{Success, "VK_SUCCESS"},
		{ErrorDeviceLost, "VK_ERROR_DEVICE_LOST"},
		{ErrorIncompatibleDriver, "VK_ERROR_INCOMPATIBLE_DRIVER"},
		{ErrorOutOfPoolMemory, "VK_ERROR_OUT_OF_POOL_MEMORY"},
		{-12345, "VkResult(-12345)"},
	} {
		if c.r.String() != c.want || c.r.Error() != c.want {
			t.Errorf("Result(%d) = %q, %q; want %q", int32(c.r), c.r.String(), c.r.Error(), c.want)
		}
	}
	if got := PhysicalDeviceTypeCpu.String(); got != "VK_PHYSICAL_DEVICE_TYPE_CPU" {
		t.Errorf("PhysicalDeviceTypeCpu = %q", got)
	}
}

func TestStrings(t *testing.T) {
	for _, s := range []string{"", "main", "Gerät 9"} {
		if got := GoString(CString(s)); got != s {
			t.Errorf("GoString(CString(%q)) = %q", s, got)
		}
	}
	if got := GoString(nil); got != "" {
		t.Errorf("GoString(nil) = %q", got)
	}
}
