package arch

// Width is the number of values in a row of v in layer l; 0: the layer has no such value. For values that are as wide in all layers, such as X, Hidden and Logits, l may be
// any number.
func (h *Hyper) Width(l int, v Value) int {
	switch {
	case v == None || v == Cache:
		return 0
	case v == Logits:
		return h.VocabSize
	case v >= Q && v <= Up, v == QueryGate, v == LatentQ, v == HeadOut, v == AttGate, v == HeadGate, v == KVHeads:
		return h.headWidth(&h.Layers[l], v)
	case v >= Scores && v <= SharedOut, v >= ExpertIn && v <= UpScale:
		return h.mixtureWidth(v)
	case v == QueryLatent:
		return h.Latent.QueryRank
	case v == KVLatent:
		return h.Latent.Rank
	case v == KRoped:
		return firstRopeDim(h)
	case v >= DeltaIn && v <= DeltaOut:
		return h.Delta.width(v)
	case v >= LayerInputs && v <= LayerGate:
		return h.LayerInput.width(v)
	case v >= SSMGate && v <= SSMOut:
		return h.Mamba.width(v)
	}
	return h.EmbeddingLength
}

// firstRopeDim is Dr of the first rope, which latent attention uses; 0: the model has no rope.
func firstRopeDim(h *Hyper) int {
	if len(h.Ropes) == 0 {
		return 0
	}
	return h.Ropes[0].Dim
}

// headWidth is [Hyper.Width] of values whose width follows from the heads or the FFN of a layer of shape s.
func (h *Hyper) headWidth(s *LayerShape, v Value) int {
	switch v {
	case Q:
		if h.Latent.Absorbed() {
			return s.HeadCount * h.Latent.KeyLength
		}
		return s.HeadCount * s.KeyLength
	case K:
		return s.HeadCountKV * s.KeyLength
	case V:
		if h.Latent.Absorbed() {
			return 0 // they are in K
		}
		return s.HeadCountKV * s.ValueLength
	case Att, AttGate:
		return s.HeadCount * s.ValueLength
	case QueryGate:
		return 2 * s.HeadCount * s.KeyLength
	case LatentQ:
		return s.HeadCount * s.KeyLength
	case HeadGate:
		return s.HeadCount
	case HeadOut:
		return s.HeadCount * h.Latent.ValueLength
	case KVHeads:
		return s.HeadCount * (s.KeyLength - firstRopeDim(h) + s.ValueLength)
	}
	return s.FeedForwardLength // of Gate and Up
}

// MaxWidth is the largest [Hyper.Width] of v in any layer; 0: no operation of a layer, or before the layers, reads or writes v.
func (h *Hyper) MaxWidth(v Value) (n int) {
	if h.touched[v] {
		for l := range h.Layers {
			n = max(n, h.Width(l, v))
		}
	}
	return n
}

// PairWidth is the number of values that a row of v in layer l has for each expert that it uses. If v is not [Value.PerPair], it is [Hyper.Width].
func (h *Hyper) PairWidth(l int, v Value) int {
	if v.PerPair() {
		return h.Width(l, v) / max(1, h.Experts.Used)
	}
	return h.Width(l, v)
}

// LongestRow is the largest [Hyper.PairWidth] of any value in any layer: no product in a layer reads or writes longer rows.
func (h *Hyper) LongestRow() (n int) {
	for v := range NumValues {
		for l := range h.Layers {
			if h.touched[v] {
				n = max(n, h.PairWidth(l, v))
			}
		}
	}
	return n
}
