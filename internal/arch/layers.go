package arch

import (
	"fmt"
	"math"
)

// LayerShape is what may differ from layer to layer of a model.
type LayerShape struct {
	HeadCount         int  // H: query heads
	HeadCountKV       int  // Hkv: key/value heads
	KeyLength         int  // Dk: size of a head's query and key
	ValueLength       int  // Dv: size of a head's value
	FeedForwardLength int  // F: inner width of the FFN; 0: the layer has none
	Rope              int  // index in Hyper.Ropes; NoRope: queries and keys are not rotated
	Mask              int  // index in Hyper.Masks: the positions that a row's attention sees
	Sinks             bool // attention has sinks, where the architecture leaves it to the file
	Cache             bool // the layer has room in the KV cache, for keys and values of its own
	Borrows           bool // the layer attends over the keys and values of another layer, and makes none
	Lender            int  // the layer whose keys and values a layer with Borrows attends over
	State             bool // the layer has a state, see [Hyper.StateParts]
	Experts           bool // the layer's FFN is a mixture of experts

	Bounds Bounds // bounds of what SwiGLU multiplies

	XIELU [4]float32 // parameters of the FFN's activation if it is XIELU, as [Activation] has them
}

// Bounds holds bounds b of SwiGLU in the gated FFNs of a layer: silu(gate) is at most b, and the other product is clamped to -b … b. 0: no bound.
type Bounds struct {
	Experts float64 // b of each expert
	FFN     float64 // b of the FFN, or of the shared expert
}

// NoRope is LayerShape.Rope of a layer whose queries and keys are not rotated.
const NoRope = -1

// readAttention reads the keys of attention, which every layer has, and sets AttentionScale. If the file is wrong, k keeps the error.
func readAttention(k *keys, h *Hyper) {
	heads := k.ints("attention.head_count", nil)
	kv := k.ints("attention.head_count_kv", heads)
	for l := range h.Layers {
		k.wantHeads("attention.head_count", heads[l])
		k.wantHeads("attention.head_count_kv", kv[l])
	}
	readHeads(k, h, heads, kv)
}

// readSomeAttention is [readAttention] for models in which only some layers have attention: those with a tensor attn_output. If head_count_kv is 0 for such a layer, the rows
// of attn_k give the number of key/value heads.
func readSomeAttention(k *keys, h *Hyper) {
	heads := k.ints("attention.head_count", nil)
	kv := k.ints("attention.head_count_kv", heads)
	for l := range h.Layers {
		if k.rows(l, "attn_output") == 0 {
			if heads[l], kv[l] = 0, 0; k.rows(l, "attn_q") > 0 {
				k.fail("tensor \"blk.%d.attn_output.weight\" is missing, and the layer has attn_q.weight", l)
			}
			continue
		}
		k.wantHeads("attention.head_count", heads[l])
	}
	readHeads(k, h, heads, kv)
}

// readHeads reads the sizes of heads, and sets the shape of attention in the layers that have heads. heads and kv are the numbers of query heads and of key/value heads by
// layer; heads[l] 0: the layer has no attention; kv[l] 0: as many as attn_k has rows for.
func readHeads(k *keys, h *Hyper, heads, kv []int) {
	length := make([]int, k.layers)
	for l := range h.Layers {
		length[l] = h.EmbeddingLength / max(1, heads[l])
	}
	length = k.ints("attention.key_length", length)
	values := k.ints("attention.value_length", length)
	for l := range h.Layers {
		if k.err != nil {
			return
		}
		if heads[l] == 0 {
			continue
		}
		s := &h.Layers[l]
		s.HeadCount, s.HeadCountKV, s.KeyLength, s.ValueLength, s.Cache = heads[l], kv[l], length[l], values[l], true
		if k.checkHeads(s); k.err == nil && s.HeadCountKV == 0 {
			s.HeadCountKV = k.headsOf(l, s.KeyLength)
		}
		if k.err == nil && s.HeadCount%s.HeadCountKV != 0 {
			k.fail("key %q: found %d query heads, wanted a multiple of the %d of %s_kv", k.arch+".attention.head_count", s.HeadCount, s.HeadCountKV, "attention.head_count")
		}
		if h.AttentionScale == 0 {
			h.AttentionScale = float32(1 / math.Sqrt(float64(s.KeyLength)))
		}
	}
}

// headsOf is the number of key heads of the given length that attn_k of layer l has rows for.
func (k *keys) headsOf(l, length int) int {
	n := k.rows(l, "attn_k")
	if n == 0 || n%length != 0 {
		k.fail("tensor \"blk.%d.attn_k.weight\": found %d rows, wanted heads of %d: attention.head_count_kv does not count them", l, n, length)
	}
	return n / length
}

// wantHeads fails if a layer has no heads.
func (k *keys) wantHeads(name string, n int) {
	if n < 1 {
		k.fail("key %q: found %d, wanted at least 1", k.arch+"."+name, n)
	}
}

// maxKey and maxValue are the largest head sizes the attention kernels hold.
const maxKey, maxValue = 576, 512

// checkHeads checks that attention kernels take the sizes of a layer's heads.
func (k *keys) checkHeads(s *LayerShape) {
	for _, c := range []struct {
		what    string
		v, most int
	}{{"key", s.KeyLength, maxKey}, {"value", s.ValueLength, maxValue}} {
		if k.err == nil && (c.v < 8 || c.v%8 != 0 || c.v > c.most) {
			k.err = &UnsupportedError{What: fmt.Sprintf("key %q: %s head size", k.arch+".attention."+c.what+"_length", c.what), Have: fmt.Sprint(c.v), Want: fmt.Sprintf("multiples of 8 up to %d", c.most)}
		}
	}
}

// setFeedForward sets the inner width of the FFN of layers, by layer; k keeps an error if one is 0.
func (k *keys) setFeedForward(h *Hyper, lengths []int) {
	for l := range h.Layers {
		if lengths[l] < 1 {
			k.fail("key %q: found %d, wanted at least 1", k.arch+".feed_forward_length", lengths[l])
			return
		}
		h.Layers[l].FeedForwardLength = lengths[l]
	}
}

// StatePart is the shape of a part of a layer's state: a matrix of float32, one for each sequence.
type StatePart struct{ Rows, Cols int }

// The parts of a layer's state, which [Hyper.StateParts] gives in this order.
const (
	ConvPart  = iota // (Taps-1, channels) the convolution's last inputs, the oldest first
	ScanPart         // (Di, Ns) state of the scan, or (Hn*Dn, Dn) of the delta rule
	partCount        // number of parts
)

// Bytes is the size of a part, rounded up to 256 bytes so that the next one begins where kernels can read it.
func (p StatePart) Bytes() int64 { return (4*int64(p.Rows)*int64(p.Cols) + 255) &^ 255 }

// StateParts is the parts of the state of layer l, indexed by ConvPart and ScanPart, in the order in which they lie in memory. A part that the layer does not have is empty.
func (h *Hyper) StateParts(l int) (parts [partCount]StatePart) {
	switch d, m := &h.Delta, &h.Mamba; {
	case !h.Layers[l].State:
	case d.Heads > 0:
		parts[ConvPart], parts[ScanPart] = StatePart{d.Taps - 1, d.Channels()}, StatePart{d.Heads * d.HeadLength, d.HeadLength}
	case m.Inner > 0:
		parts[ConvPart], parts[ScanPart] = StatePart{m.Taps - 1, m.Channels()}, StatePart{m.Inner, m.State}
	default:
		parts[ConvPart] = StatePart{h.ShortConvTaps - 1, h.EmbeddingLength}
	}
	return parts
}

// StateBytes is the size in bytes of the state of all layers for one sequence; 0: no layer has a state.
func (h *Hyper) StateBytes() (n int64) {
	for l := range h.Layers {
		for _, p := range h.StateParts(l) {
			n += p.Bytes()
		}
	}
	return n
}
