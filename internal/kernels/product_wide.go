package kernels

import (
	"leat/shaders"
)

// wideProduct multiplies X in float32 by weights of F32, F16 or BF16, with loads of 16 bytes.
var wideProduct = variant[Products]{
	Rule: Rule{
		Op: "mul_mat_vec", Variant: shaders.Wide, When: "decode, without cooperative matrices prompts too; weights F32, F16 or BF16, rows of a multiple of 8 values",
		Needs: needsBytes, lacks: lacksBytes, kernels: []string{"mul_mat_vec_wide"},
	},
	unfit:  func(r *Recorder, p *Products) string { return unfitTeam(r, p, shaders.Wide) },
	record: func(r *Recorder, p *Products) error { return recordTeam(r, p, shaders.Wide) },
}
