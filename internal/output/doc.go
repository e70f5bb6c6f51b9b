// Package output writes files so that none is lost: neither what stood there, nor what was to stand there.
//
// A regular file appears under its name only when all of it is written; until then the old one stays. Links are followed.
// A pipe or a device is written to, never replaced. What a command reads is never written over.
//
// Unstable: importable by our own commands and tools, no promise to others.
package output
