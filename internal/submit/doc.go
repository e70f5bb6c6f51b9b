// Package submit hands recorded commands to the device's compute queue, in order, and keeps account of them: command
// buffers, timeline values, timestamps, the cost and the length of each submission, rests for the pacer, and commands
// that are kept to be submitted again. It knows nothing of layers or experts.
//
// A [Queue] works on one step at a time. Its caller opens a command buffer of the step's [Commands], records into it with
// [Queue.Rec], and closes it with [Commands.Submit], or with [Commands.Enqueue] where the next one is to go in the same
// submission.
package submit
