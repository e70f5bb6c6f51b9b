// Package broken makes broken files of a model: each of its keys and tensors is left out, written twice, and given another type or shape, one at a time.
// Tests hold the loading of models against these files.
package broken
