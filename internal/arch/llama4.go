package arch

// llama4 is the layer of Llama 4: most layers have rope, after which the heads of Q and K may be normalised, and attention over chunks; the others have queries that
// grow with the position.
func llama4(p *program) {
	s := p.shape()
	p.rms(Norm, X, "attn_norm")
	p.qkv(Norm)
	p.rope()
	switch {
	case s.Rope == NoRope:
		p.add(Op{Kind: ScaleRows, Dst: Q, A: Q})
	case p.h.Experts.Count != llama4Unnormed:
		p.headRMS(Q, "", s.HeadCount, s.KeyLength)
		p.headRMS(K, "", s.HeadCountKV, s.KeyLength)
	}
	p.attend()
	p.linear(Norm, Att, "attn_output")
	p.addX(Norm)
	p.rms(Norm, X, "ffn_norm")
	if s.Experts {
		llama4Experts(p)
		return
	}
	p.ffn(Norm, Norm, SwiGLU)
	p.addX(Norm)
}

// llama4Unnormed is the number of experts of the model (Maverick) whose heads are not normalised. No key of its file says so.
const llama4Unnormed = 128

// llama4Experts adds a mixture of experts that reads Norm, and adds its output to X. What the chosen experts read is multiplied by their weights, instead of what they
// write.
func llama4Experts(p *program) {
	p.add(addRouter(p, Norm))
	sharedExpert(p, X, X, Norm)
	p.add(Op{Kind: PairScale, Dst: ExpertIn, A: Norm})
	chosenExperts(p, ExpertIn, SwiGLU)
	p.add(Op{Kind: SumExperts, Dst: X, A: ExpertOut, B: X, Plain: true})
}

// readLlama4 reads the keys of Llama 4. A file that says that there is no window has rope in all layers, which see all positions.
func readLlama4(k *keys, h *Hyper) {
	withExperts(adjacent, mixtureDefaults{gating: Sigmoid})(k, h)
	if k.err != nil {
		return
	}
	if h.Experts.Count > 0 && h.Experts.SharedLength == 0 { // the file has a shared expert, but no key for it
		h.Experts.SharedLength = h.Experts.FeedForwardLength
	}
	experts := max(1, k.int("interleave_moe_layer_step", 1))
	chunked := k.pattern("attention.sliding_window_pattern", 4, allButLast)
	chunk := k.int("attention.chunk_size", 8192)
	h.RowScale = RowScale{Factor: k.atLeastZero("attention.temperature_scale", 0.1), Length: k.int("attention.temperature_length", 8192), Offset: 1}
	if chunk < 1 || h.RowScale.Length < 1 {
		k.fail("attention: found chunks of %d positions, and queries that grow every %d; wanted at least 1", chunk, h.RowScale.Length)
	}
	everywhere := k.int("attention.sliding_window", chunk) == 0
	if !everywhere {
		h.Masks = append(h.Masks, Mask{Chunk: chunk})
	}
	for l := range h.Layers {
		s := &h.Layers[l]
		s.Experts = s.Experts && (l+1)%experts == 0
		switch {
		case everywhere:
		case chunked[l]:
			s.Mask = len(h.Masks) - 1
		default:
			s.Rope = NoRope
		}
	}
}
