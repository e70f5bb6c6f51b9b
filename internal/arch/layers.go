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
	Cache             bool // the layer has keys and values in the KV cache
	State             bool // the layer has a state, see [Hyper.StateParts]
	Experts           bool // the layer's FFN is a mixture of experts
}

// NoRope is LayerShape.Rope of a layer whose queries and keys are not rotated.
const NoRope = -1

// readAttention reads the keys of attention, which every layer has, and sets AttentionScale. If the file is wrong, k keeps the error.
func readAttention(k *keys, h *Hyper) {
	heads := k.ints("attention.head_count", nil)
	kv := k.ints("attention.head_count_kv", heads)
	length := make([]int, k.layers)
	for l := range h.Layers {
		if k.wantHeads("attention.head_count", heads[l]); k.err == nil {
			k.wantHeads("attention.head_count_kv", kv[l])
		}
		if k.err != nil {
			return
		}
		if heads[l]%kv[l] != 0 {
			k.fail("%d query heads are not a multiple of %d key/value heads", heads[l], kv[l])
		}
		length[l] = h.EmbeddingLength / heads[l]
	}
	length = k.ints("attention.key_length", length)
	values := k.ints("attention.value_length", length)
	for l := range h.Layers {
		s := &h.Layers[l]
		s.HeadCount, s.HeadCountKV, s.KeyLength, s.ValueLength, s.Cache = heads[l], kv[l], length[l], values[l], true
		k.checkHeads(s)
	}
	h.AttentionScale = float32(1 / math.Sqrt(float64(h.Layers[0].KeyLength)))
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
			k.err = &UnsupportedError{What: c.what + " head size", Have: fmt.Sprint(c.v), Want: fmt.Sprintf("multiples of 8 up to %d", c.most)}
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
