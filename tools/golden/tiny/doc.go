// Package tiny makes GGUF files of a few hundred KiB with random weights, one for each architecture worth a golden.
//
// The same name gives the same bytes. Shapes are small, but each has what its architecture is known for: several groups, layers
// of each kind, sizes that are no powers of two.
package tiny
