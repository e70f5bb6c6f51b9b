// Package cache keeps small files between runs, each with a key that says which device and driver it is valid for.
//
// Load returns a file's content only if the file is intact and its key matches; it treats all other files as absent. Update replaces the
// whole file under a lock, so that two processes keep each other's changes.
//
// It keeps markers too. A [Marker] names the risky work that a process is doing, so that the next run knows what a crash was in.
package cache
