// Package calibrate measures what a machine reaches: its disk, its link, its device.
//
// Each measurement does what the engine does with the bytes: files are read past the page
// cache by several readers, uploads go through package xfer, weights are read by the kernels
// that decode. [File] keeps what was measured, so that a machine is measured once.
//
// Unstable: importable by our own commands and tools, no promise to others.
package calibrate
