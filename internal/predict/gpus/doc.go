// Package gpus is what the data sheets say of the GPUs people have.
//
// gpus.tsv is the data: one line a GPU. Peaks are the makers' figures; what programs reach
// of them is for package predict to say.
//
// Unstable: importable by our own commands and tools, no promise to others.
package gpus
