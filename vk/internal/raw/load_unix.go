//go:build !windows

package raw

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// libraryNames are tried in order. Only development packages ship the name
// without a version.
var libraryNames, loaderHint = platform(runtime.GOOS)

func platform(goos string) (names []string, hint string) {
	switch goos {
	case "darwin":
		// dyld does not search Homebrew's folder on arm64 by itself.
		return []string{"libvulkan.1.dylib", "libvulkan.dylib", "/opt/homebrew/lib/libvulkan.1.dylib", "libMoltenVK.dylib", "/opt/homebrew/lib/libMoltenVK.dylib"},
			"install the Vulkan loader and MoltenVK: brew install vulkan-loader molten-vk"
	case "linux":
		return []string{"libvulkan.so.1", "libvulkan.so"},
			"install the Vulkan loader (Debian, Ubuntu: libvulkan1; Fedora: vulkan-loader; Arch: vulkan-icd-loader) and your GPU's driver (AMD, Intel, or none: mesa-vulkan-drivers)"
	}
	return []string{"libvulkan.so.1", "libvulkan.so"}, "install the Vulkan loader (package vulkan-loader) and your GPU's Vulkan driver"
}

// dlInfo is Dl_info of dlfcn.h.
type dlInfo struct {
	fname *byte
	_     [3]uintptr // fbase, sname, saddr
}

// libraryFile asks the dynamic linker whose code is at addr.
func libraryFile(_, addr uintptr) string {
	// int dladdr(const void *addr, Dl_info *info)
	fn, err := purego.Dlsym(purego.RTLD_DEFAULT, "dladdr")
	if err != nil {
		return ""
	}
	info := &dlInfo{}
	c := newCall()
	c.words[0] = addr
	c.ptr(1, Ptr(info))
	if int32(c.do(fn, 2)) == 0 {
		return ""
	}
	return GoString(info.fname)
}
