// Package truth computes a model's logits in float64, as plainly as its architecture can be said.
//
// It shares no code with the engine or its kernels: weights are read and dequantised by packages gguf and quant, all else is
// loops, one token at a time, written from the published descriptions of the models. What an engine computes is held against it.
package truth
