// Package submit submits recorded commands to the device's compute queue, in order. It owns the command buffers, timeline
// values and timestamps, estimates and measures how long each command buffer runs, inserts the pacer's rests, and keeps
// command buffers to submit them again. It knows nothing of layers or experts.
//
// A [Queue] works on one step at a time. Its caller opens a command buffer of the step's [Commands], records into it with
// [Queue.Rec], and closes it with [Commands.Submit], or with [Commands.Enqueue] if the next one belongs to the same
// submission.
package submit
