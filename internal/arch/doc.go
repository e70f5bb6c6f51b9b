// Package arch says what a model is: its hyperparameters, read from the file's
// metadata, and each of its layers as a list of operations bound to tensor names.
//
// It is pure: no device, no file access beyond the metadata and tensor shapes it
// is given. Shapes are written outermost first, with the letters of the style
// guide: D embedding, L layers, F feed-forward, H query heads, Hkv key/value
// heads, Dk and Dv head sizes, V vocabulary, N rows of a step.
//
// Unstable: importable by our own commands and tools, no promise to others.
package arch
