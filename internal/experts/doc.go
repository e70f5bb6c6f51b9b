// Package experts runs the experts of a mixture's layers within a step. Its interface, [Runner], has two implementations:
// [placed], for experts in units of the plan, in VRAM or streamed; and [slotted], for experts that share slots of VRAM,
// where the host looks up which experts are missing. In steps of one row, when most experts are in VRAM, slotted
// dispatches a layer conditionally instead: the device looks the experts up, see [conditional].
package experts
