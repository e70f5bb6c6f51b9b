package arch

import "math"

// Latent is how multi-head latent attention (DeepSeek-V2, arXiv:2405.04434) makes heads; Rank 0: it isn't used. The cache holds a
// latent of each position and a key part that turns, one head of keys whose first values are the values as well: what
// would make keys and values of the latent is multiplied by the queries and by what comes out instead.
type Latent struct {
	QueryRank int // of the queries' own latent; 0: they come from X
	Rank      int // R: of the keys' and values' latent
	Key       int // values of a head's query: Dn that don't turn, then Dr that do
	Value     int // values of a head's output
}

// readLatent takes what the metadata says of latents; KeyLength and ValueLength are those of the cache then.
func readLatent(k *keys, h *Hyper) {
	m := Latent{
		QueryRank: k.int("attention.q_lora_rank", 0), Rank: k.int("attention.kv_lora_rank", -1),
		Key: k.int("attention.key_length_mla", 0), Value: k.int("attention.value_length_mla", 0),
	}
	turned := k.int("rope.dimension_count", -1)
	switch {
	case m.Key == 0 || m.Value == 0:
		if k.err == nil {
			k.err = &UnsupportedError{What: "latent attention", Have: "of a file without " + k.arch + ".attention.key_length_mla", Want: "files of converters from 2025 on"}
		}
	case h.HeadCountKV != 1 || h.KeyLength != m.Rank+turned || h.ValueLength != m.Rank:
		k.fail("latent attention: found %d key heads of %d, values of %d; wanted 1 of %d + %d, values of %d", h.HeadCountKV, h.KeyLength, h.ValueLength, m.Rank, turned, m.Rank)
	case m.Key <= turned:
		k.fail("key %q: found %d, wanted more than the %d values that turn", k.arch+".attention.key_length_mla", m.Key, turned)
	case m.Key%4 != 0 || m.Value%4 != 0 || m.Rank%4 != 0 || turned%4 != 0:
		k.fail("latent attention: found heads of %d and %d, %d turned, and a latent of %d; wanted multiples of 4", m.Key, m.Value, turned, m.Rank)
	}
	h.Latent = m
	h.AttentionScale = float32(1 / math.Sqrt(float64(m.Key)))
	// DeepSeek's YaRN leaves cosine and sine as they are and scales the scores by the square of its factor, which the file has as a tenth
	// of mscale_all_dim.
	if log := k.atLeastZero("rope.scaling.yarn_log_multiplier", 0); log != 0 && h.Rope.ExtFactor != 0 {
		factor := math.Log(1 / h.Rope.Scale)
		h.Rope.AttnFactor /= 1 + 0.1*factor
		scale := 1 + log*factor
		h.AttentionScale *= float32(scale * scale)
	}
}

// latentAttention adds multi-head latent attention of Norm to X.
func (p *program) latentAttention(l int) {
	h, m := p.h, &p.h.Latent
	still := m.Key - h.Rope.Dim
	if m.QueryRank > 0 {
		p.linear(QueryLatent, Norm, "attn_q_a")
		p.headNorm(QueryLatent, "attn_q_a_norm", 1, m.QueryRank)
		p.linear(Q, QueryLatent, "attn_q_b")
	} else {
		p.linear(Q, Norm, "attn_q")
	}
	p.linear(K, Norm, "attn_kv_a_mqa")
	p.headNorm(K, "attn_kv_a_norm", 1, m.Rank)
	p.op(Op{Kind: RopeTurn, Dst: Q, Heads: h.HeadCount, Cols: m.Key, Off: still})
	p.op(Op{Kind: RopeTurn, Dst: K, Heads: 1, Cols: h.KeyLength, Off: m.Rank})
	p.op(Op{Kind: HeadMulMat, Dst: LatentQ, A: Q, Weight: p.prefix + "attn_k_b.weight", Heads: h.HeadCount, Cols: still, Rows: m.Rank})
	p.op(Op{Kind: HeadCopy, Dst: LatentQ, A: Q, Heads: h.HeadCount, Cols: h.Rope.Dim, Off: m.Rank, OffA: still})
	p.op(Op{Kind: KVAppend, A: K, B: K})
	p.attention(LatentQ, l)
	p.op(Op{Kind: HeadMulMat, Dst: HeadOut, A: Att, Weight: p.prefix + "attn_v_b.weight", Heads: h.HeadCount, Cols: m.Rank, Rows: m.Value})
	p.linear(Norm, HeadOut, "attn_output")
	p.op(Op{Kind: Add, Dst: X, A: X, B: Norm})
}

// latentWidth is Width of what only latent attention has.
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
	return h.HeadCount * m.Value
}
