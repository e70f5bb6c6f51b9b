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
	Rope              int  // index in Hyper.Ropes of what rotates queries and keys; NoRope: nothing does
	Mask              int  // index in Hyper.Masks of what a row's attention sees
	Sinks             bool // attention has sinks, where the architecture leaves it to the file
	Cache             bool // the layer has keys and values in the KV cache
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

// readSomeAttention is [readAttention] for models of which only some layers have attention: those with a tensor attn_output. Where head_count_kv is 0 for such a layer, attn_k
// tells the number of key/value heads.
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

// readHeads reads the sizes of heads, and sets the shape of attention in the layers that have heads, the number of query heads. kv is the number of key/value heads of each
// layer; 0: as many as attn_k has rows for.
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

// StatePart is a part of a layer's state: a matrix of float32.
type StatePart struct{ Rows, Cols int }

// The parts of a layer's state, which [Hyper.StateParts] gives in this order.
const (
	ConvPart  = iota // the convolution's last inputs
	ScanPart         // what the scan or the delta rule goes on with
	partCount        // number of parts
)

// Bytes is the size of a part, rounded up so that the next one begins where kernels can read it.
func (p StatePart) Bytes() int64 { return (4*int64(p.Rows)*int64(p.Cols) + 255) &^ 255 }

// StateParts is the parts of the state of layer l, one after the other; empty parts if it has none.
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

// StateBytes is the size of a sequence's state of all layers; 0: no layer has a state.
func (h *Hyper) StateBytes() (n int64) {
	for l := range h.Layers {
		for _, p := range h.StateParts(l) {
			n += p.Bytes()
		}
	}
	return n
}
