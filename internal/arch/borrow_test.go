package arch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
)

// lenders is the layer whose keys and values each layer attends over; its own number with a ! if it has room for them, but makes none.
func lenders(h *arch.Hyper) string {
	var list []string
	for l, s := range h.Layers {
		switch {
		case !s.Borrows && s.Cache:
			list = append(list, fmt.Sprint(l))
		case s.Borrows && !s.Cache:
			list = append(list, fmt.Sprint(s.Lender))
		case s.Borrows && s.Lender == l:
			list = append(list, fmt.Sprint(l, "!"))
		}
	}
	return strings.Join(list, " ")
}

// The last layers of Gemma 4 attend over the cache of the last layer before them with the same mask; they make no keys and values, also if the file has weights for them.
func TestBorrowedCaches(t *testing.T) {
	const shared = "gemma4.attention.shared_kv_layers"
	m := nano(t, "gemma4-nano")
	full := withTensor(t, withTensor(t, m, pack.Layer, 4, "blk.4.attn_k.weight", 32, 64), pack.Layer, 4, "blk.4.attn_k_norm.weight", 32)
	for _, m := range []*pack.Model{m, full} {
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := lenders(h); got != "0 1 2 1 2 1" || len(h.Notes) > 0 {
			t.Errorf("lenders %s, notes %q", got, h.Notes)
		}
		for l := range h.Layers {
			makes := slices.ContainsFunc(h.Layer(l, m.Has), func(o arch.Op) bool { return o.Kind == arch.KVAppend || o.Dst == arch.K })
			if makes != (l < 3) {
				t.Errorf("layer %d makes keys: %v", l, makes)
			}
		}
		for _, c := range []struct {
			as   []int
			want string
		}{{[]int{1, 3, 5, 2, 4}, "0 0 0 3 3"}, {[]int{5, 4, 2}, "0! 1! 2"}, {[]int{2, 5, 5}, "0 1! 2!"}} {
			if got := lenders(h.View(c.as)); strings.ReplaceAll(got, " !", "!") != c.want {
				t.Errorf("view %v: lenders %s, wanted %s", c.as, got, c.want)
			}
		}
	}
	if _, err := arch.Read(withTensor(t, m, pack.Layer, 4, "blk.4.attn_k.weight", 16, 64)); err == nil || !strings.Contains(err.Error(), "attn_k") {
		t.Errorf("with keys of another size: error %v", err)
	}
	for n, want := range map[uint32]string{6: "shared_kv_layers", 5: "shared_kv_layers", 7: "shared_kv_layers", 2: "attn_k"} {
		if _, err := arch.Read(withKey(t, m, shared, n)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d layers: error %v, wanted one about %s", n, err, want)
		}
	}
	if _, err := arch.Read(withKey(t, m, "gemma4.attention.head_count_kv", []int32{2, 2, 1, 1, 1, 2})); err == nil || !strings.Contains(err.Error(), "layer 3") {
		t.Errorf("a lender with other heads: error %v", err)
	}
}

// Each layer of Gemma 4 gets its own part of the inputs, which are as wide in a view as in the model.
func TestLayerInputs(t *testing.T) {
	m := nano(t, "gemma4-nano")
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	for l := range h.Layers {
		ops := h.Layer(l, m.Has)
		i := slices.IndexFunc(ops, func(o arch.Op) bool { return o.Kind == arch.HeadCopy && o.A == arch.LayerInputs })
		if i < 0 || ops[i].OffA != 16*l || ops[i].Cols != 16 {
			t.Errorf("layer %d: operation %d copies its input", l, i)
		}
	}
	if tables := arch.Tables(h.View([]int{0})); len(tables) != 2 || h.View([]int{0}).Width(0, tables[1].Dst) != 96 {
		t.Errorf("tables %v", tables)
	}
	for _, n := range []uint32{0, 8} {
		if _, err := arch.Read(withKey(t, m, "gemma4.embedding_length_per_layer_input", n)); err == nil || !strings.Contains(err.Error(), "per_layer") && !strings.Contains(err.Error(), "inp_gate") {
			t.Errorf("inputs of %d: error %v", n, err)
		}
	}
}
