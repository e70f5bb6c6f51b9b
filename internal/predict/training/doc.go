// Package training says how long a step of fine-tuning will take when frozen weights are streamed.
//
// It is arithmetic from data sheets for leat plan --train. leat does not train yet, so no figure here was measured with it.
//
// Unstable: importable by our own commands and tools, no promise to others.
package training
