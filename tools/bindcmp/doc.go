// Bindcmp compares leat's Vulkan binding with github.com/goki/vulkan and github.com/vulkan-go/vulkan.
//
//	(cd tools/bindcmp && go run .)               # facts, one dispatch each, costs: markdown on stdout
//	(cd tools/bindcmp && go run . -crash 30s)    # also: pipelines made while the garbage collector runs
//	(cd tools/bindcmp && go run . -facts)        # facts only: needs no device
//	(cd tools/bindcmp && go test ./...)
//
// It exits 1 when a fact or a result differs. Speed and crashes are told, not judged.
//
// Facts come from the type checker. Constants are compared by value. For layouts,
// ours are Go structs; theirs are what cgo made of the Vulkan headers they bring
// (the Go structs they export are another thing, copied field by field into C's).
//
// Each binding runs in a program of its own (byleat, bygoki, byvulkango, byc):
// the two others define the same C symbols, and a crash should end one only.
// Ours is built with CGO_ENABLED=0, as it is shipped. Byvulkango is bygoki's
// source with the other import; a test holds them equal.
//
// It is a module of its own so that leat's users never see cgo. It needs gcc,
// Vulkan's headers and libvulkan.so, which the two others and byc open (Debian:
// libvulkan-dev). No build flags are needed: both carry the headers they build with.
package main
