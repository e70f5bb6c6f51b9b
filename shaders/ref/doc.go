// Package ref is every kernel of the shaders table written as plain Go loops: the truth a device is compared with.
//
// Sums run in float64, so that an error found by a self-test is the kernel's own.
// Matrices are row-major and shapes are written outermost first; the letters are those of the naming guide:
// T rows (tokens) in a step, D width, H query heads, Hkv key/value heads, Dk and Dv sizes of one head.
// Buffers must have the shapes named beside them.
package ref
