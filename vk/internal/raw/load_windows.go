package raw

import "golang.org/x/sys/windows"

var libraryNames = []string{"vulkan-1.dll"}

const loaderHint = "install or update your graphics driver: it brings vulkan-1.dll"

func libraryFile(lib, _ uintptr) string {
	name := make([]uint16, windows.MAX_LONG_PATH)
	n, err := windows.GetModuleFileName(windows.Handle(lib), &name[0], uint32(len(name)))
	if err != nil {
		return ""
	}
	return windows.UTF16ToString(name[:n])
}
