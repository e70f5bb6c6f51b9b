package ref

import "math"

// FlashAttnOptions change which positions a row attends to, and with what weight. 0 or nil is none.
type FlashAttnOptions struct {
	Window  int       // a row attends to so many positions at most, its own the last
	SoftCap float32   // scores s become SoftCap * tanh(s / SoftCap)
	Sinks   []float32 // (H) scores that join the softmax without a value
}

// FlashAttn lets row r attend to positions 0..pos[r] of sequence seq[r]: softmax(scale * q·k) · v for each query head.
// Query heads share key/value heads in groups of H/Hkv (GQA).
func FlashAttn(dst Mat /* (T, H*Dv) */, q Mat /* (T, H*Dk) */, kv *KV, pos, seq []uint32 /* (T) */, heads int, scale float32, o FlashAttnOptions) {
	for r := range q.Rows {
		for h := range heads {
			sink := math.Inf(-1)
			if o.Sinks != nil {
				sink = float64(o.Sinks[h])
			}
			first := 0
			if o.Window > 0 {
				first = max(0, int(pos[r])+1-o.Window)
			}
			attend(dst.Row(r)[h*kv.ValLen:(h+1)*kv.ValLen], q.Row(r)[h*kv.KeyLen:(h+1)*kv.KeyLen],
				kv, int(seq[r]), h*kv.HeadsKV/heads, first, int(pos[r]), scale, float64(o.SoftCap), sink)
		}
	}
}

func attend(dst []float32 /* (Dv) */, q []float32 /* (Dk) */, kv *KV, seq, headKV, first, last int, scale float32, softCap, sink float64) {
	att := make([]float64, last-first+2) // scores, then probabilities, of positions first..last; behind them the sink's
	key, val := make([]float32, kv.KeyLen), make([]float32, kv.ValLen)
	for p := range att[:len(att)-1] {
		kv.Key(seq, headKV, first+p).load(key)
		for i, v := range q {
			att[p] += float64(v) * float64(key[i])
		}
		att[p] *= float64(scale)
		if softCap > 0 {
			att[p] = softCap * math.Tanh(att[p]/softCap)
		}
	}
	att[len(att)-1] = sink
	softMax(att)
	out := make([]float64, len(dst)) // (Dv)
	for p, w := range att[:len(att)-1] {
		kv.Val(seq, headKV, first+p).load(val)
		for i, v := range val {
			out[i] += w * float64(v)
		}
	}
	for i, v := range out {
		dst[i] = float32(v)
	}
}
