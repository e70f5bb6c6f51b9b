// Package gensum keeps the hashes of generated files beside them, so that a check needs no compiler.
//
// A file of sums has a line for each generated file: its name, the hash of what it was made from, and the hash of what was made.
// A generated file is fresh while both hold.
package gensum
