// Package file reads files past the page cache, many pieces at a time, into memory
// that the caller gives.
//
// A [File] is opened for direct reads where its file system takes them; elsewhere it
// is read through the page cache, which is asked to forget what was read. A [Pool]
// is the queue in front of the disk: as many reads are under way as it has readers.
// Direct reads begin and end on blocks, so what was asked for begins [Skip] bytes
// into the memory given, which needs room for [Room].
package file
