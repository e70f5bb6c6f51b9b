package arch

import "math"

// readMiniCPM3 reads the keys of MiniCPM3. The factors of the embeddings, of what layers add and of the logits are the same for all models: no key has them.
func readMiniCPM3(k *keys, h *Hyper) {
	withDenseFFN(halves)(k, h)
	m := Latent{QueryRank: k.int("attention.q_lora_rank", 0), Rank: k.int("attention.kv_lora_rank", -1), Expanded: true}
	if k.err != nil {
		return
	}
	if m.Rank < 1 {
		k.fail("key %q: found %d, wanted at least 1", k.arch+".attention.kv_lora_rank", m.Rank)
	}
	_, _, hasValues := k.lookUp("attention.value_length", nil)
	for l := range h.Layers {
		s := &h.Layers[l]
		if !hasValues {
			s.ValueLength = h.EmbeddingLength / s.HeadCount
		}
		k.checkHeads(s)
		if unrotated := s.KeyLength - h.Ropes[0].Dim; s.HeadCountKV != s.HeadCount || unrotated < 1 {
			k.fail("keys %[1]s.attention.head_count_kv, %[1]s.attention.key_length and %[1]s.rope.dimension_count: found %d key heads of %d, of which %d turn, for %d query heads; wanted as many, and more than turn",
				k.arch, s.HeadCountKV, s.KeyLength, h.Ropes[0].Dim, s.HeadCount)
		}
	}
	h.Latent = m
	const residualDepth, embeddingScale, baseWidth = 1.4, 12, 256
	h.EmbeddingScale = embeddingScale
	h.ResidualScale = float32(residualDepth / math.Sqrt(float64(h.BlockCount)))
	h.LogitScale = float32(baseWidth / float64(h.EmbeddingLength))
}

// miniCPM3 is the layer of MiniCPM3.
func miniCPM3(p *program) {
	p.rms(Norm, X, "attn_norm")
	expandedLatentAttention(p)
	p.feedForward("ffn_norm")
}

// expandedLatentAttention adds multi-head latent attention that reads Norm and adds its output to X. The keys and values of all heads are computed from the
// latent, but for the part of the keys that rope rotates, which all heads share.
func expandedLatentAttention(p *program) {
	m, s := &p.h.Latent, p.shape()
	ropeDim := p.h.Ropes[s.Rope].Dim
	unrotated := s.KeyLength - ropeDim
	if m.QueryRank > 0 {
		p.linear(QueryLatent, Norm, "attn_q_a")
		p.headRMS(QueryLatent, "attn_q_a_norm", 1, m.QueryRank)
		p.linear(Q, QueryLatent, "attn_q_b")
	} else {
		p.linear(Q, Norm, "attn_q")
	}
	p.linearRows(KVLatent, Norm, "attn_kv_a_mqa", 0)
	p.linearRows(KRoped, Norm, "attn_kv_a_mqa", m.Rank)
	p.headRMS(KVLatent, "attn_kv_a_norm", 1, m.Rank)
	p.linear(KVHeads, KVLatent, "attn_kv_b")
	p.add(Op{Kind: RopeHeads, Dst: Q, Heads: s.HeadCount, Cols: s.KeyLength, Off: unrotated, Rope: s.Rope})
	p.add(Op{Kind: RopeHeads, Dst: KRoped, Heads: 1, Cols: ropeDim, Rope: s.Rope})
	p.add(Op{Kind: HeadCopy, Dst: K, A: KVHeads, Heads: s.HeadCount, Cols: unrotated})
	p.add(Op{Kind: HeadCopy, Dst: K, A: KRoped, Heads: s.HeadCount, Cols: ropeDim, Off: unrotated, OneHead: true})
	p.add(Op{Kind: HeadCopy, Dst: V, A: KVHeads, Heads: s.HeadCount, Cols: s.ValueLength, OffA: unrotated})
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
}
