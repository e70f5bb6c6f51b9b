package arch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"leat/internal/arch"
)

// everyRow is a layer as it is where it is not the last one.
func everyRow(ops []arch.Op) []arch.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(o arch.Op) bool { return o.Kind == arch.KeepLogitRows })
}

// The last layer, and it alone, lets rows go that nobody asks logits of, once cache and states have what they need of them;
// and what is read of the others behind that goes on with them.
func TestKeepAsked(t *testing.T) {
	for name, want := range map[string][]arch.Value{
		"glm4moe-nano": {arch.X, arch.Q}, "gpt-oss-nano": {arch.X, arch.Q}, "deepseek3-nano": {arch.X, arch.LatentQ}, "gemma4-nano": {arch.X, arch.Q, arch.LayerInputs}, "qwen3next-nano": {arch.X, arch.Q, arch.QueryGate},
	} {
		m := nano(t, name)
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		for l := range h.BlockCount {
			ops := h.Layer(l, m.Has)
			at := slices.IndexFunc(ops, func(o arch.Op) bool { return o.Kind == arch.KeepLogitRows })
			if (at >= 0) != (l == h.BlockCount-1) {
				t.Errorf("%s: layer %d of %d: rows go at operation %d", name, l, h.BlockCount, at)
			}
			if at < 0 {
				continue
			}
			if got := ops[at].Values; !slices.Equal(got, want) || !slices.Equal(got, h.LogitRowValues(m.Has)) {
				t.Errorf("%s: values %v go on, wanted %v", name, got, want)
			}
			behind := arch.KVAppend
			if h.Layers[l].Borrows { // keys of an earlier layer
				behind = arch.RopeHeads
			}
			if k := ops[at-1].Kind; k != behind {
				t.Errorf("%s: rows go behind an operation of kind %d, wanted %d", name, k, behind)
			}
			if fused := arch.Fuse(ops); fmt.Sprint(everyRow(fused)) != fmt.Sprint(arch.Fuse(everyRow(ops))) {
				t.Errorf("%s: other operations are together", name)
			}
		}
	}
	// A layer with a state: what its gate and its norm read goes on.
	m := nano(t, "qwen3next-nano")
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	v := h.View([]int{3, 0})
	ops := v.Layer(1, func(tensor string) bool {
		return m.Has(strings.Replace(tensor, "blk.1.", "blk.0.", 1))
	})
	at := slices.IndexFunc(ops, func(o arch.Op) bool { return o.Kind == arch.KeepLogitRows })
	if want := []arch.Value{arch.X, arch.DeltaGate, arch.DeltaOut}; !slices.Equal(ops[at].Values, want) || ops[at-1].Kind != arch.GatedDeltaNet {
		t.Errorf("values %v go on behind kind %d, wanted %v behind %d", ops[at].Values, ops[at-1].Kind, want, arch.GatedDeltaNet)
	}
}
