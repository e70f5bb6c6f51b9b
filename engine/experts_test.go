package engine_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/internal/trace"
	"leat/shaders"
	"leat/tools/testdata"
	"leat/vk/vktest"
)

// Steps of a model with experts take them by bytes or by matrices, gate and up as one product, where the device can: none of
// them falls back in silence. Pairs of a prompt are sorted once a layer.
func TestExpertKernels(t *testing.T) {
	p, f := chosen(t, vktest.Enable())
	if !kernels.HasFewRowKernels(p, f) {
		t.Skipf("%s has no products of bytes", p.Name)
	}
	const bytes, matrices = "mul_mat_vec_id_int8", "mul_mat_id_cm"
	few := map[string]int{bytes: 2, "sum_experts": 1} // gates and what they let through are one
	short, long := few, map[string]int{bytes: 2, "group_experts": 1, "sum_experts": 1}
	if kernels.PromptsUseMatrices(p, f) {
		long = map[string]int{matrices: 2, "group_experts": 1, "sum_experts": 1}
		short = long
	}
	for _, c := range []struct {
		rows int
		want map[string]int // calls a layer
	}{{1, few}, {8, short}, {12, long}, {32, long}} {
		t.Run(fmt.Sprintf("%d rows", c.rows), func(t *testing.T) {
			var ops trace.Ops
			m := load(t, filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf"), setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Trace: engine.TraceOf(nil, &ops)}}))
			s, err := m.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Forward(t.Context(), slices.Repeat([]token.ID{1}, c.rows)); err != nil {
				t.Fatal(err)
			}
			calls := map[string]int{}
			all, _ := ops.Take()
			for _, o := range all {
				calls[strings.Fields(o.Name)[0]] += o.Calls
			}
			if len(calls) == 0 {
				t.Skipf("%s has no timestamps", p.Name)
			}
			layers := calls["topk_moe"] + calls["topk_moe_held"] + calls["topk_moe_routed"]
			if layers == 0 {
				t.Errorf("no layer has experts: %v", calls)
			}
			for _, name := range []string{bytes, matrices, "group_experts", "sum_experts", "mul_mat_vec_id", "mul_mat_id", "swiglu"} {
				if want := (layers-1)*c.want[name] + few[name]; calls[name] != want { // the last layer has one row left, to decode
					t.Errorf("%d calls of %s for %d layers, wanted %d", calls[name], name, layers, want)
				}
			}
		})
	}
}

// A norm, a router and the choice of experts in one dispatch give the bits that the three give, for as many rows as go together.
func TestNormedRoute(t *testing.T) {
	alone(t)
	if p, f := chosen(t, vktest.Enable()); !kernels.HasFewRowKernels(p, f) {
		t.Skipf("%s has no steps of few rows", p.Name)
	}
	for name, one := range map[string]bool{"qwen3moe-tiny-q4_k_m": true, "deepseek3-nano": true, "qwen2moe-nano": true, "gpt-oss-nano": false, "leat-demo-moe-q4_k_m": true} {
		t.Run(name, func(t *testing.T) {
			g := goldenNamed(t, name)
			var ops trace.Ops
			o := setup(engine.Options{KVType: "f32", ContextLength: 64, Tuning: engine.Tuning{Chunk: 7, Trace: engine.TraceOf(nil, &ops)}})
			var ids []token.ID
			for i := range 34 {
				ids = append(ids, token.ID(1+7*i%200))
			}
			run := func(test func(*kernels.Kernels, kernels.Variant) error) (logits []float32, routed, apart int) {
				o := engine.WithKernels(o, func(g *kernels.Options) { g.FuseRouter, g.Test = true, test })
				logits = decoded(t, load(t, g.model, o), ids)
				all, _ := ops.Take()
				for _, op := range all {
					switch name, _, _ := strings.Cut(op.Name, " "); name {
					case "topk_moe_routed":
						routed += op.Calls
					case "topk_moe", "topk_moe_held":
						apart += op.Calls
					}
				}
				return logits, routed, apart
			}
			got, routed, left := run(selftest.Prove)
			want, none, apart := run(func(_ *kernels.Kernels, v kernels.Variant) error {
				if v.Row.Variant == shaders.Routed {
					return errors.New("broken for this test")
				}
				return nil
			})
			sameBits(t, "in one dispatch", got, want)
			if apart == 0 {
				t.Skip("the device has no timestamps")
			}
			if none != 0 || routed+left != apart || (left == 0) != one {
				t.Errorf("%d choices in one dispatch and %d apart; with that kernel broken %d and %d", routed, left, none, apart)
			}
		})
	}
}
