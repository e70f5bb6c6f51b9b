package arch

import (
	"fmt"
	"math"
)

// Latent is the hyperparameters of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434); Rank 0: the model does not use it. For each position the cache holds
// a latent and the rotated part of the key, as one key head, whose first Rank values are also the value. This is the absorbed form: queries are multiplied by the matrix for
// keys, and attention's output by the matrix for values, so the keys and values of heads are never computed. With Expanded they are computed from the latent, and the cache
// holds them.
type Latent struct {
	QueryRank   int  // Rq: size of the latent of queries; 0: queries are computed from X directly
	Rank        int  // R: size of the latent of keys and values
	KeyLength   int  // size of a head's query: a part without rope, then Dr values that rope rotates
	ValueLength int  // size of a head's output
	RopeDim     int  // Dr: the part of a key that all heads share, which rope rotates if the layer has rope
	Expanded    bool // the cache holds the keys and values of all heads
}

// Absorbed reports whether the model has latent attention in the absorbed form: its cache holds latents.
func (m *Latent) Absorbed() bool { return m.Rank > 0 && !m.Expanded }

// readDeepSeek2 reads the keys of DeepSeek-V2 and V3. Early files of V3 and its relatives, whose routers have biases, lack the keys that tell their routers from V2's.
func readDeepSeek2(k *keys, h *Hyper) {
	biased := false
	for l := range h.Layers {
		biased = biased || k.shape(fmt.Sprintf("blk.%d.exp_probs_b.bias", l)) != nil
	}
	d := mixtureDefaults{}
	if biased {
		d = mixtureDefaults{gating: Sigmoid, normalise: true}
	}
	withExperts(adjacent, d)(k, h)
	if l := firstExperts(h); l >= 0 && h.Experts.Gating == Sigmoid && !biased {
		k.fail("tensor \"blk.%d.exp_probs_b.bias\" is missing, which models of this gating have", l)
	}
	if k.err == nil {
		readLatent(k, h)
	}
}

// readLatent reads the keys of latent attention, and checks them against each other; if the file is wrong, k keeps the error. It sets Latent and AttentionScale of
// h, and corrects AttnFactor of the rope for DeepSeek's YaRN. KeyLength and ValueLength of layers are sizes in the cache, and stay.
func readLatent(k *keys, h *Hyper) {
	m := Latent{
		QueryRank: k.int("attention.q_lora_rank", 0), Rank: k.int("attention.kv_lora_rank", -1),
		KeyLength: k.int("attention.key_length_mla", 0), ValueLength: k.int("attention.value_length_mla", 0),
	}
	ropeDim := k.int("rope.dimension_count", -1)
	m.RopeDim = ropeDim
	switch {
	case m.KeyLength == 0 || m.ValueLength == 0:
		if k.err == nil {
			k.err = &UnsupportedError{What: "latent attention", Have: "of a file without " + k.arch + ".attention.key_length_mla", Want: "files of converters from 2025 on"}
		}
	case m.KeyLength <= ropeDim:
		k.fail("key %q: found %d, wanted more than the %d values that turn", k.arch+".attention.key_length_mla", m.KeyLength, ropeDim)
	case m.KeyLength%4 != 0 || m.ValueLength%4 != 0 || m.Rank%4 != 0 || ropeDim%4 != 0:
		k.fail("latent attention: found heads of %d and %d, %d turned, and a latent of %d; wanted multiples of 4", m.KeyLength, m.ValueLength, ropeDim, m.Rank)
	}
	for l := range h.Layers {
		if s := &h.Layers[l]; s.Cache && (s.HeadCountKV != 1 || s.KeyLength != m.Rank+ropeDim || s.ValueLength != m.Rank) {
			k.fail("keys %s.attention.head_count_kv, key_length and value_length: found %d key heads of %d, values of %d; wanted, for latent attention, 1 of %d + %d, values of %d", k.arch, s.HeadCountKV, s.KeyLength, s.ValueLength, m.Rank, ropeDim, m.Rank)
		}
	}
	h.Latent = m
	h.AttentionScale = float32(1 / math.Sqrt(float64(m.KeyLength)))
	// DeepSeek's YaRN leaves cosine and sine as they are and scales the scores by the square of its factor, which the file has as a tenth
	// of mscale_all_dim.
	if log := k.atLeastZero("rope.scaling.yarn_log_multiplier", 0); log != 0 && len(h.Ropes) > 0 && h.Ropes[0].ExtFactor != 0 {
		factor := math.Log(1 / h.Ropes[0].Scale)
		h.Ropes[0].AttnFactor /= yarnTemperature(1 / h.Ropes[0].Scale)
		scale := 1 + log*factor
		h.AttentionScale *= float32(scale * scale)
	}
}

// deepSeek2 is the layer of DeepSeek-V2 and V3.
func deepSeek2(p *program) {
	p.rms(Norm, X, "attn_norm")
	latentAttention(p)
	p.feedForward("ffn_norm")
}

// latentAttention adds multi-head latent attention that reads Norm and adds its output to X.
func latentAttention(p *program) {
	m, s := &p.h.Latent, p.shape()
	unrotated := m.KeyLength - m.RopeDim
	if m.QueryRank > 0 {
		p.linear(QueryLatent, Norm, "attn_q_a")
		p.headRMS(QueryLatent, "attn_q_a_norm", 1, m.QueryRank)
		p.linear(Q, QueryLatent, "attn_q_b")
	} else {
		p.linear(Q, Norm, "attn_q")
	}
	p.linear(K, Norm, "attn_kv_a_mqa")
	p.headRMS(K, "attn_kv_a_norm", 1, m.Rank)
	if s.Rope != NoRope {
		p.add(Op{Kind: RopeHeads, Dst: Q, Heads: s.HeadCount, Cols: m.KeyLength, Off: unrotated, Rope: s.Rope})
		p.add(Op{Kind: RopeHeads, Dst: K, Heads: 1, Cols: s.KeyLength, Off: m.Rank, Rope: s.Rope})
	}
	p.add(Op{Kind: HeadMulMat, Dst: LatentQ, A: Q, Weight: p.weight("attn_k_b"), Heads: s.HeadCount, Cols: unrotated, Rows: m.Rank})
	p.add(Op{Kind: HeadCopy, Dst: LatentQ, A: Q, Heads: s.HeadCount, Cols: m.RopeDim, Off: m.Rank, OffA: unrotated})
	p.add(Op{Kind: KVAppend, A: K, B: K})
	p.attendTo(LatentQ, "")
	p.add(Op{Kind: HeadMulMat, Dst: HeadOut, A: Att, Weight: p.weight("attn_v_b"), Heads: s.HeadCount, Cols: m.Rank, Rows: m.ValueLength})
	p.linear(Norm, HeadOut, "attn_output")
	p.addX(Norm)
}
