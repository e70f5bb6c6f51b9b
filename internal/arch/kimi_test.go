package arch_test

import (
	"slices"
	"strings"
	"testing"

	"leat/internal/arch"
)

// Layers of Kimi Linear have a state whose rows fade one by one, or a cache of latents; nothing is rotated.
func TestKimiLinear(t *testing.T) {
	m := nano(t, "kimi-linear-nano")
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Ropes) > 0 || len(h.Notes) > 0 || h.Experts.Gating != arch.Sigmoid || !h.Experts.Normalise {
		t.Errorf("ropes %v, notes %q, experts %+v", h.Ropes, h.Notes, h.Experts)
	}
	for l, s := range h.Layers {
		parts := h.StateParts(l)
		if state := l%2 == 0; s.State != state || s.Cache == state || state != (parts[arch.ConvPart] == arch.StatePart{Rows: 3, Cols: 3 * 64}) || state != (parts[arch.ScanPart] == arch.StatePart{Rows: 64, Cols: 16}) {
			t.Errorf("layer %d: %+v, parts %v", l, s, parts)
		}
	}
	var offs []int
	for _, o := range h.Layer(0, m.Has) {
		if o.Kind == arch.SSMConv {
			offs = append(offs, o.Off)
		}
	}
	if !slices.Equal(offs, []int{0, 64, 128}) {
		t.Errorf("convolutions write from values %v on", offs)
	}
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"kda.head_dim", nil, "head_dim"}, {"kda.head_dim", uint32(18), "multiple of 4"}, {"kda.head_dim", uint32(32), "blk.0."}, {"ssm.conv_kernel", uint32(5), "conv_kernel"},
		{"attention.head_count_kv", nil, "head_count_kv"}, {"attention.head_count_kv", []int32{0, 4, 0, 4}, "latent attention"}, {"attention.head_count_kv", []int32{0, 0, 0, 1}, "blk.1."},
		{"attention.key_length", uint32(40), "latent attention"}, {"rope.dimension_count", uint32(32), "latent attention"}, {"attention.key_length_mla", nil, "key_length_mla"},
		{"kda.safe_gate", true, "kda.safe_gate"},
	} {
		if _, err := arch.Read(withKey(t, m, "kimi-linear."+c.key, c.value)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %v: error %v, wanted one about %s", c.key, c.value, err, c.want)
		}
	}
}
