package kernels

import (
	"leat/shaders"
)

// longsProduct is like [int8Product], with loads of 64 bits: on a CPU each takes no longer than a load of 32 bits.
var longsProduct = variant[Products]{
	Rule: Rule{
		Op: "mul_mat_vec", Variant: shaders.Longs, When: "as int8; of weights not IQ1, IQ2, IQ3, TQ, NVFP4, Q1_0 and Q2_0",
		Needs: needsBytes + ", 64-bit integers; a CPU", lacks: lacksLongs, kernels: []string{"mul_mat_vec_longs", "quantize_q8"},
	},
	unfit:  func(r *Recorder, p *Products) string { return unfitTeam(r, p, shaders.Longs) },
	record: func(r *Recorder, p *Products) error { return recordTeam(r, p, shaders.Longs) },
}

// lacksLongs says what the device lacks for [longsProduct], "" if nothing. That product loads 64 bits at a time, and is used only if the device is a CPU.
func lacksLongs(k *Kernels) string {
	if lacks := lacksBytes(k); lacks != "" || k.can.longs {
		return lacks
	}
	if !k.dev.Features.Int64 {
		return "integers of 64 bits"
	}
	return "a CPU"
}
