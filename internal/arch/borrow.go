package arch

// borrowCaches makes the last n layers attend over the keys and values of another layer, their lender: the last one before these n layers that has the same mask. They
// make no keys and values of their own. If there is no such layer, k keeps an error.
func borrowCaches(k *keys, h *Hyper, n int) {
	first := h.BlockCount - n
	for l := max(0, first); l < h.BlockCount && k.err == nil; l++ {
		s, lender := &h.Layers[l], first-1
		for lender >= 0 && h.Layers[lender].Mask != s.Mask {
			lender--
		}
		if lender < 0 {
			k.fail("key %q: found %d of %d layers, wanted layers of each kind before them", k.arch+".attention.shared_kv_layers", n, h.BlockCount)
			return
		}
		if o := &h.Layers[lender]; o.HeadCountKV != s.HeadCountKV || o.KeyLength != s.KeyLength || o.ValueLength != s.ValueLength {
			k.fail("keys %[1]s.attention.shared_kv_layers and %[1]s.attention.sliding_window_pattern: layer %[2]d: found %[3]d key/value heads of %[4]d and %[5]d values, wanted those of layer %[6]d, whose keys and values it shares", k.arch, l, s.HeadCountKV, s.KeyLength, s.ValueLength, lender)
		}
		s.Cache, s.Borrows, s.Lender = false, true, lender
	}
}

// relend sets the lenders of a view's layers, of which layer i is the model's layer as[i]. A layer whose lender is not before it in the view lends to itself: it gets room
// in the KV cache that no layer writes. Its results are then wrong, but it takes as long as it would with its lender.
func relend(h *Hyper, as []int) {
	for i := range h.Layers {
		s := &h.Layers[i]
		if !s.Borrows {
			continue
		}
		lender := i
		for j, l := range as[:i] {
			if l == s.Lender {
				lender = j
			}
		}
		s.Lender, s.Cache = lender, lender == i
	}
}

// allowBorrowedKeys allows tensors of keys and values in layer l if it borrows those of another layer: files may have them, but no operation reads them.
func (b *binding) allowBorrowedKeys(l int) {
	s, d := &b.h.Layers[l], b.h.EmbeddingLength
	if !s.Borrows {
		return
	}
	b.allow(l, "attn_k.weight", nil, s.HeadCountKV*s.KeyLength, d)
	b.allow(l, "attn_v.weight", nil, s.HeadCountKV*s.ValueLength, d)
	b.allow(l, "attn_k_norm.weight", f32s, s.KeyLength)
}
