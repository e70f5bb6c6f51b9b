package arch_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/tools/testdata"
)

// Scales beside weights multiply the products before biases are added; those of activations are left out, with a note.
func TestScales(t *testing.T) {
	m := nano(t, "bits-moe-tiny")
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Notes) != 1 || h.Notes[0] != "10 scales of activations (input_scale) are not used" {
		t.Errorf("notes %q", h.Notes)
	}
	var got []string
	for _, o := range h.Layer(1, m.Has) {
		for _, o := range append([]arch.Op{o}, o.Ops...) {
			if name, isScale := strings.CutSuffix(o.Weight+o.Weight2, ".scale"); isScale {
				got = append(got, strings.TrimPrefix(name, "blk.1."))
			} else if len(got) > 0 && o.Kind == arch.Bias && o.Weight == "blk.1."+got[len(got)-1]+".bias" {
				got = append(got, "then bias")
			}
		}
	}
	want := []string{"attn_q", "then bias", "attn_k", "then bias", "attn_v", "then bias", "attn_output",
		"ffn_down_exps", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp", "ffn_gate_exps", "ffn_up_exps"}
	if !slices.Equal(got, want) {
		t.Errorf("scales of\n%q, want\n%q", got, want)
	}
	if ops := h.LogitOps(m.Has); len(ops) != 1 || ops[0].Kind != arch.MulWeight || ops[0].Weight != arch.OutputScale {
		t.Errorf("operations on logits: %+v", ops)
	}
}

// A scale beside a weight of any type counts.
func TestScaleBesideFloats(t *testing.T) {
	m, err := pack.Open(filepath.Join(testdata.Dir(t), "faults", "llama-scale3.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	ops := h.Layer(0, m.Has)
	i := slices.IndexFunc(ops, func(o arch.Op) bool { return o.Kind == arch.MulWeight })
	if i < 1 || ops[i].Weight != "blk.0.ffn_down.scale" || ops[i-1].Weight != "blk.0.ffn_down.weight" || ops[i].Dst != ops[i-1].Dst {
		t.Errorf("operations %+v", ops)
	}
}

// Scales of weights that have none in llama.cpp either, of another shape, or of nothing, are refused by name.
func TestScalesRefused(t *testing.T) {
	for _, c := range []struct {
		model, name string
		shape       []int64
		want        string // "": it loads
	}{
		{"qwen2moe-nano", "blk.0.attn_q.scale", []int64{1}, ""},
		{"qwen2moe-nano", "blk.0.attn_q.scale", []int64{64}, "found shape [64], wanted [1]"},
		{"qwen2moe-nano", "blk.0.ffn_up_exps.scale", []int64{6}, ""},
		{"qwen2moe-nano", "blk.0.ffn_up_exps.scale", []int64{1}, "found shape [1], wanted [6]"},
		{"qwen2moe-nano", "blk.0.ffn_down_exps.scale", []int64{6}, ""},
		{"qwen2moe-nano", "blk.0.ffn_down_exps.scale", []int64{5}, "found shape [5], wanted [6]"},
		{"gpt-oss-nano", "blk.0.ffn_down_exps.scale", []int64{5}, "no operation"}, // its experts have biases
		{"qwen2moe-nano", "blk.0.ffn_gate_inp.scale", []int64{1}, "no operation"},
		{"qwen2moe-nano", "blk.0.attn_qkv.scale", []int64{1}, "no operation"}, // there is no such weight
		{"qwen2moe-nano", "blk.0.attn_q.input_scale", []int64{1}, ""},
		{"qwen2moe-nano", "blk.0.attn_q.input_scale", []int64{64}, "no operation"},
		{"qwen2moe-nano", "blk.0.attn_qkv.input_scale", []int64{1}, "no operation"},
		{"qwen2moe-nano", "blk.0.ffn_up_exps.input_scale", []int64{6}, ""},
		{"qwen2moe-nano", "blk.0.ffn_up_exps.input_scale", []int64{1}, "no operation"},
		{"qwen2moe-nano", "blk.0.ffn_gate_inp.input_scale", []int64{1}, "no operation"},
	} {
		t.Run(fmt.Sprint(c.model, " ", c.name, c.shape), func(t *testing.T) {
			_, err := arch.Read(withTensor(t, nano(t, c.model), pack.Layer, 0, c.name, c.shape...))
			var unread *arch.UnreadError
			switch {
			case c.want == "":
				if err != nil {
					t.Error(err)
				}
			case err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.want):
				t.Errorf("error %v, want one with %q", err, c.want)
			case errors.As(err, &unread) && !strings.Contains(unread.Hint(), "scales of attn_q"):
				t.Errorf("hint %q", unread.Hint())
			}
		})
	}
}
