// Package raw is the Vulkan C API as Go calls, generated from vk.xml.
//
// The gen_*.go files come from tools/genvk: every name is C's without its vk or
// Vk, every struct has C's layout, every command is a method of the table it was
// looked up with. [Load] opens the system's Vulkan loader at run time, through
// purego, without cgo; a [Loader] makes an instance, [Loader.LoadInstance] and
// [InstanceFuncs.LoadDevice] look up what needs one. Nothing is tied to one
// instance or device, so a process may hold several. Tables are read-only after
// they were made and safe for any number of goroutines; Vulkan's own rules about
// external synchronisation stay with the caller.
//
// # Memory rules
//
// C sees Go memory only while a call runs. The garbage collector does not move
// heap objects, but it frees them, and it moves stacks; so:
//
//   - A pointer argument escapes to the heap and is held until the call returns.
//     What it reaches through typed pointers and unsafe.Pointer fields (pNext,
//     arrays) escapes with it and lives as long. Never hide a Go pointer in a
//     uintptr or uint64 field.
//   - Vulkan keeps nothing after a call, with two exceptions that need memory the
//     collector does not own, or an owner that outlives them: mapped or imported
//     host memory, and the user data of callbacks (see [MessageCallback]).
//   - Because arguments escape, a struct literal in the call costs an allocation.
//     Hot paths keep their structs in a long-lived object; then no call allocates.
//
// There are no finalizers. Only 64-bit platforms are supported.
//
// # Absent commands
//
// Commands of Vulkan 1.2 and older are always there, or loading fails. Newer ones
// and those of extensions may be absent: ask Has. Calling an absent one is safe:
// it returns [ErrorExtensionNotPresent], or does nothing if it has no result. A
// command that an extension brought first is also found under its old name.
package raw
