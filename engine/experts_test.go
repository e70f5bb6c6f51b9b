package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/engine/trace"
	"leat/shaders/gpu"
	"leat/tools/testdata"
	"leat/vk/vktest"
)

// A decode step of a model with experts takes them by bytes, gate and up as one product, where the device can: none of them
// falls back in silence.
func TestExpertKernels(t *testing.T) {
	var ops trace.Ops
	m := load(t, filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf"), engine.Options{ContextLength: 64, Ops: &ops})
	p, f := chosen(t, vktest.Enable())
	if !gpu.Few(p, f) {
		t.Skipf("%s has no products of bytes", p.Name)
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Forward(t.Context(), []token.ID{1}); err != nil {
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
	layers := calls["topk_moe"]
	if layers == 0 || calls["mul_mat_vec_id_int8"] != 2*layers {
		t.Errorf("%d layers with experts have %d products in bytes, wanted 2 each: %v", layers, calls["mul_mat_vec_id_int8"], calls)
	}
	for _, name := range []string{"mul_mat_vec_id", "mul_mat_id", "swiglu"} {
		if n := calls[name]; n != 0 {
			t.Errorf("%d calls of %s, wanted none", n, name)
		}
	}
}
