package kernels

import (
	"leat/shaders"
)

// int8Product multiplies X in int8 by quantised weights.
var int8Product = variant[Products]{
	Rule: Rule{
		Op: "mul_mat_vec", Variant: shaders.Int8, When: "decode, without cooperative matrices prompts too; weights in blocks, rows of whole blocks of 32",
		Needs: needsBytes, lacks: lacksBytes, kernels: []string{"mul_mat_vec_int8", "quantize_q8"},
	},
	unfit:  func(r *Recorder, p *Products) string { return unfitTeam(r, p, shaders.Int8) },
	record: func(r *Recorder, p *Products) error { return recordTeam(r, p, shaders.Int8) },
}
