// Command synth writes models with random weights: a GGUF file, a pack, or both.
//
// The work is done by [leat/tools/synth/synthetic], which tests use too.
package main
