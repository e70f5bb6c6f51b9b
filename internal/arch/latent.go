package arch

import "math"

// Latent is the hyperparameters of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434); Rank 0: the model does not use it. For each position the cache holds
// a latent and the rotated part of the key, as one key head, whose first Rank values are also the value. The keys and values of heads are not computed from the
// latent. Instead, queries are multiplied by the matrix for keys, and attention's output by the matrix for values.
type Latent struct {
	QueryRank   int // Rq: size of the latent of queries; 0: queries are computed from X directly
	Rank        int // R: size of the latent of keys and values
	KeyLength   int // size of a head's query: a part that rope leaves as it is, then Dr values that rope rotates
	ValueLength int // size of a head's output
}

// readLatent reads the keys of latent attention, and checks them against each other; if the file is wrong, k keeps the error. It sets Latent and AttentionScale of
// h, and corrects Rope.AttnFactor for DeepSeek's YaRN. KeyLength and ValueLength of h are sizes in the cache, and stay.
func readLatent(k *keys, h *Hyper) {
	m := Latent{
		QueryRank: k.int("attention.q_lora_rank", 0), Rank: k.int("attention.kv_lora_rank", -1),
		KeyLength: k.int("attention.key_length_mla", 0), ValueLength: k.int("attention.value_length_mla", 0),
	}
	turned := k.int("rope.dimension_count", -1)
	switch {
	case m.KeyLength == 0 || m.ValueLength == 0:
		if k.err == nil {
			k.err = &UnsupportedError{What: "latent attention", Have: "of a file without " + k.arch + ".attention.key_length_mla", Want: "files of converters from 2025 on"}
		}
	case h.HeadCountKV != 1 || h.KeyLength != m.Rank+turned || h.ValueLength != m.Rank:
		k.fail("latent attention: found %d key heads of %d, values of %d; wanted 1 of %d + %d, values of %d", h.HeadCountKV, h.KeyLength, h.ValueLength, m.Rank, turned, m.Rank)
	case m.KeyLength <= turned:
		k.fail("key %q: found %d, wanted more than the %d values that turn", k.arch+".attention.key_length_mla", m.KeyLength, turned)
	case m.KeyLength%4 != 0 || m.ValueLength%4 != 0 || m.Rank%4 != 0 || turned%4 != 0:
		k.fail("latent attention: found heads of %d and %d, %d turned, and a latent of %d; wanted multiples of 4", m.KeyLength, m.ValueLength, turned, m.Rank)
	}
	h.Latent = m
	h.AttentionScale = float32(1 / math.Sqrt(float64(m.KeyLength)))
	// DeepSeek's YaRN leaves cosine and sine as they are and scales the scores by the square of its factor, which the file has as a tenth
	// of mscale_all_dim.
	if log := k.atLeastZero("rope.scaling.yarn_log_multiplier", 0); log != 0 && h.Rope.ExtFactor != 0 {
		factor := math.Log(1 / h.Rope.Scale)
		h.Rope.AttnFactor /= 1 + 0.1*factor
		scale := 1 + log*factor
		h.AttentionScale *= float32(scale * scale)
	}
}

// latentAttention adds multi-head latent attention that reads Norm and adds its output to X.
func (p *program) latentAttention(l int) {
	h, m := p.h, &p.h.Latent
	still := m.KeyLength - h.Rope.Dim
	if m.QueryRank > 0 {
		p.linear(QueryLatent, Norm, "attn_q_a")
		p.headNorm(QueryLatent, "attn_q_a_norm", 1, m.QueryRank)
		p.linear(Q, QueryLatent, "attn_q_b")
	} else {
		p.linear(Q, Norm, "attn_q")
	}
	p.linear(K, Norm, "attn_kv_a_mqa")
	p.headNorm(K, "attn_kv_a_norm", 1, m.Rank)
	p.add(Op{Kind: RopeHeads, Dst: Q, Heads: h.HeadCount, Cols: m.KeyLength, Off: still})
	p.add(Op{Kind: RopeHeads, Dst: K, Heads: 1, Cols: h.KeyLength, Off: m.Rank})
	p.add(Op{Kind: HeadMulMat, Dst: LatentQ, A: Q, Weight: p.prefix + "attn_k_b.weight", Heads: h.HeadCount, Cols: still, Rows: m.Rank})
	p.add(Op{Kind: HeadCopy, Dst: LatentQ, A: Q, Heads: h.HeadCount, Cols: h.Rope.Dim, Off: m.Rank, OffA: still})
	p.add(Op{Kind: KVAppend, A: K, B: K})
	p.attention(LatentQ, l)
	p.add(Op{Kind: HeadMulMat, Dst: HeadOut, A: Att, Weight: p.prefix + "attn_v_b.weight", Heads: h.HeadCount, Cols: m.Rank, Rows: m.ValueLength})
	p.linear(Norm, HeadOut, "attn_output")
	p.add(Op{Kind: Add, Dst: X, A: X, B: Norm})
}

// latentWidth is [Hyper.Width] of QueryLatent, LatentQ and HeadOut, which only latent attention has.
func (h *Hyper) latentWidth(v Value) int {
	m := &h.Latent
	switch {
	case m.Rank == 0:
		return 0
	case v == QueryLatent:
		return m.QueryRank
	case v == LatentQ:
		return h.HeadCount * h.KeyLength
	}
	return h.HeadCount * m.ValueLength
}
