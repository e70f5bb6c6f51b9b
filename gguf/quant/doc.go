// Package quant turns ggml's block formats into float32 values.
//
// [Decode] is the truth that kernels are held against: each decoder does the plain
// float32 operations of the format, in its order, rounding after each. (The explicit
// float32 conversions keep a compiler from fusing a multiply with the add after it.)
package quant
