// Package experts runs the experts of a mixture's layers within a step. It has one door, [Runner], and an implementation
// for each way experts can live: [placed], where units of the plan hold them, in VRAM or streamed; [slotted], where they
// share slots of VRAM and the host is asked which are missing; and, for steps of one row with most experts in VRAM,
// conditional dispatch, which asks the device instead.
package experts
