package arch_test

import (
	"fmt"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
)

// indexed is a small DeepSeek-V3 as a file of another architecture that has an indexer in each layer.
func indexed(t *testing.T, name string) *pack.Model {
	t.Helper()
	return with(t, nano(t, "deepseek3-nano"), func(md *gguf.Metadata, units []pack.Unit) []pack.Unit {
		set := func(key string, v any) {
			if err := md.Set(key, v); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range md.Keys() {
			if rest, ours := strings.CutPrefix(key, "deepseek2."); ours {
				v, _ := md.Get(key)
				set(name+"."+rest, v)
				md.Delete(key)
			}
		}
		set("general.architecture", name)
		for key, n := range map[string]uint32{"head_count": 2, "key_length": 32, "top_k": 100} {
			set(name+".attention.indexer."+key, n)
		}
		for i := range units {
			if u := &units[i]; u.Kind == pack.Layer {
				for rest, shape := range map[string][]int64{"attn_q_b.weight": {64, 32}, "attn_k.weight": {32, 64}, "proj.weight": {2, 64}, "k_norm.weight": {32}, "k_norm.bias": {32}} {
					u.Tensors = append(u.Tensors, pack.Tensor{Name: fmt.Sprintf("blk.%d.indexer.%s", u.Layer, rest), Type: gguf.F32, Shape: shape, Bytes: 4})
				}
			}
		}
		return units
	})
}

// Models with an indexer run as DeepSeek-V3 does, in contexts in which the indexer has nothing to choose.
func TestIndexers(t *testing.T) {
	m := nano(t, "deepseek3-nano")
	plain, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"deepseek32", "glm-dsa"} {
		m := indexed(t, name)
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		for l := range h.Layers {
			if got, want := fmt.Sprint(h.Layer(l, m.Has)), fmt.Sprint(plain.Layer(l, m.Has)); got != want {
				t.Errorf("%s: layer %d is not DeepSeek-V3's:\n%s\n%s", name, l, got, want)
			}
		}
		if n, why := arch.MostContext(h); h.Experts != plain.Experts || h.AttentionScale != plain.AttentionScale || n != 100 || arch.LongestContext(h) != 100 || why == "" || len(h.Notes) > 0 {
			t.Errorf("%s: experts %+v, scale %g, contexts of %d: %s, notes %q", name, h.Experts, h.AttentionScale, n, why, h.Notes)
		}
		if _, err := arch.Read(withKey(t, m, name+".attention.indexer.top_k", nil)); err == nil || !strings.Contains(err.Error(), "top_k") {
			t.Errorf("%s without top_k: error %v", name, err)
		}
		if _, err := arch.Read(withKey(t, m, name+".attention.indexer.key_length", uint32(16))); err == nil || !strings.Contains(err.Error(), "indexer.") {
			t.Errorf("%s with shorter keys: error %v", name, err)
		}
		if _, err := arch.Read(withTensor(t, m, pack.Layer, 0, "blk.0.indexer.q_norm.weight", 32)); err == nil {
			t.Errorf("%s with a norm of the indexer's queries: loads", name)
		}
	}
	m = withKey(t, withKey(t, indexed(t, "glm-dsa"), "glm-dsa.attention.indexer.types", []bool{true, false}), "glm-dsa.expert_gating_func", nil)
	if h, err := arch.Read(m); err != nil || h.Experts.Gating != arch.Sigmoid {
		t.Errorf("GLM-5.2: error %v", err)
	}
}
