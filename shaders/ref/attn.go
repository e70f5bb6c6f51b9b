package ref

import "math"

// FlashAttnOptions change with what weight a row attends to positions. 0 or nil is none.
type FlashAttnOptions struct {
	SoftCap float32   // scores s become SoftCap * tanh(s / SoftCap)
	Slopes  []float32 // (H) scores have slope * (position - the last position seen) added
	Sinks   []float32 // (H) scores that join the softmax without a value
}

// FlashAttn lets row r attend to positions seen[2r]..seen[2r+1] of sequence seq[r]: softmax(scale * q·k) · v for each query head.
// Query heads share key/value heads in groups of H/Hkv (GQA).
func FlashAttn(dst Mat /* (T, H*Dv) */, q Mat /* (T, H*Dk) */, kv *KV, seen /* (T, 2) */, seq []uint32 /* (T) */, heads int, scale float32, o FlashAttnOptions) {
	for r := range q.Rows {
		for h := range heads {
			s := scores{first: int(seen[2*r]), last: int(seen[2*r+1]), scale: float64(scale), softCap: float64(o.SoftCap), sink: math.Inf(-1)}
			if o.Slopes != nil {
				s.slope = float64(o.Slopes[h])
			}
			if o.Sinks != nil {
				s.sink = float64(o.Sinks[h])
			}
			s.attend(dst.Row(r)[h*kv.ValLen:(h+1)*kv.ValLen], q.Row(r)[h*kv.KeyLen:(h+1)*kv.KeyLen], kv, int(seq[r]), h*kv.HeadsKV/heads)
		}
	}
}

// scores says how the scores of positions first..last are made of products, and the sink that joins them.
type scores struct {
	first, last                 int
	scale, softCap, slope, sink float64
}

func (s *scores) attend(dst []float32 /* (Dv) */, q []float32 /* (Dk) */, kv *KV, seq, headKV int) {
	att := make([]float64, s.last-s.first+2) // scores, then probabilities, of positions first..last; behind them the sink's
	key, val := make([]float32, kv.KeyLen), make([]float32, kv.ValLen)
	for p := range att[:len(att)-1] {
		kv.Key(seq, headKV, s.first+p).load(key)
		for i, v := range q {
			att[p] += float64(v) * float64(key[i])
		}
		att[p] *= s.scale
		if s.softCap > 0 {
			att[p] = s.softCap * math.Tanh(att[p]/s.softCap)
		}
		att[p] += s.slope * float64(s.first+p-s.last)
	}
	att[len(att)-1] = s.sink
	softMax(att)
	out := make([]float64, len(dst)) // (Dv)
	for p, w := range att[:len(att)-1] {
		kv.Val(seq, headKV, s.first+p).load(val)
		for i, v := range val {
			out[i] += w * float64(v)
		}
	}
	for i, v := range out {
		dst[i] = float32(v)
	}
}
