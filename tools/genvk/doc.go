// Genvk writes the Go binding of the Vulkan commands leat needs.
//
// It reads the registry vk.xml (Debian: package libvulkan-dev) and a small
// overlay in the registry's own format for extensions newer than that file,
// takes the commands and structs of the allow-list in list.go with everything
// they reach, and writes gen_*.go of package raw. Run it from the module root:
//
//	go run ./tools/genvk          write the files
//	go run ./tools/genvk -check   exit 1 and name each file that this generator did not make, by gen.sum
//	go run ./tools/genvk -check -all   generate, and name each file that differs
package main
