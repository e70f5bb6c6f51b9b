// Package output writes files safely: a write that fails leaves the old file as it was.
//
// It writes a regular file under a temporary name, syncs it, and renames it. Where the system refuses the rename, as for a file that is
// mounted into a container, it copies the data over the old file instead; only then is the change not atomic. It follows symbolic
// links, writes through pipes and devices, and refuses to write over a file that [Options].Inputs names.
//
// A state file is a small file that the program writes for its own use, such as measurements. [ReadState] and [UpdateState] are for
// these: they take a lock, don't sync, and leave it to the caller to check what was read.
package output
