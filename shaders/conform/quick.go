package conform

import (
	"slices"

	"leat/gguf"
	"leat/shaders"
)

// quick lists for each op, or a variant or a kernel with shapes of its own, the shapes that show most of what goes wrong on a device. They are few, for a driver may take
// a second to compile a pipeline, and each tile of mul_mat is one.
var quick = map[string][]string{
	"get_rows":               {"rows=33 cols=256 scale=3e-05 far=0", "rows=5 cols=4096 scale=1 far=5368709120"},
	"mul_mat_vec":            {"M=100 K=1024 N=1 gap=0", "M=65 K=1024 N=8 gap=0"},
	"mul_mat_vec_persistent": {"M=65 K=1024 N=8 gap=0", "M=37 K=5632 N=1 gap=0", "gates, bytes M=96 K=512 N=1"},
	"mul_mat_vec_rope":       {"qkv heads=4/2 key=64 val=64 turns=64 neox=true kv=F16 K=512 N=3", "qkv heads=3/1 key=80 val=40 turns=20 neox=false kv=F32 K=768 N=1"},
	"rms_norm_q8":            {"rows=7 cols=4096 gap=4"},
	"rope_kv_f16":            {"heads=4/2 K=64 V=64 rope=64 neox=true", "heads=3/1 K=80 V=80 rope=20 neox=false"},
	"rope_kv_q8_0":           {"heads=4/2 K=64 V=64 rope=64 neox=true", "heads=3/1 K=96 V=96 rope=20 neox=false"},
	"rope_kv_q4_0":           {"heads=4/2 K=64 V=64 rope=64 neox=true", "heads=3/1 K=96 V=96 rope=20 neox=false"},
	"rope_kv_f32":            {"heads=4/2 K=64 V=64 rope=64 neox=true"},
	"rope_norm_kv":           {"heads=8/2 K=128 V=128 rope=128 neox=true", "heads=3/1 K=96 V=160 rope=20 neox=false"},
	"flash_attn_joined_f16":  {"heads=16/2 K=64 V=64 page=32 gap=0 long=0 sharp=false", "heads=2/2 K=32 V=32 page=256 gap=0 long=1 sharp=false", "heads=4/2 K=128 V=128 page=32 gap=0 long=0 sharp=false window=50 cap=2 sinks=1", "joins heads=8/1 K=64 V=128 page=32 gap=0 long=1 sharp=false parts=32"},
	"flash_attn_joined_f32":  {"heads=4/2 K=64 V=64 page=16 gap=0 long=0 sharp=true"},
	"flash_attn_joined_q8_0": {"heads=16/2 K=64 V=64 page=32 gap=0 long=0 sharp=false", "heads=4/2 K=128 V=128 page=32 gap=0 long=0 sharp=false window=50 cap=2 sinks=1"},
	"flash_attn_joined_q4_0": {"heads=16/2 K=64 V=64 page=32 gap=0 long=0 sharp=false", "heads=4/2 K=128 V=128 page=32 gap=0 long=0 sharp=false window=50 cap=2 sinks=1"},
	"flash_attn_split_f16":   {"heads=16/2 K=64 V=64 page=32 gap=0 long=0 sharp=false", "heads=4/2 K=128 V=128 page=16 gap=0 long=0 sharp=false"},
	"flash_attn_split_f32":   {"heads=4/2 K=64 V=64 page=16 gap=0 long=0 sharp=true"},
	"flash_attn_split_q8_0":  {"heads=16/2 K=64 V=64 page=32 gap=0 long=0 sharp=false", "heads=4/2 K=128 V=128 page=32 gap=0 long=0 sharp=false window=50 cap=2 sinks=1"},
	"flash_attn_split_q4_0":  {"heads=16/2 K=64 V=64 page=32 gap=0 long=0 sharp=false", "heads=4/2 K=128 V=128 page=32 gap=0 long=0 sharp=false window=50 cap=2 sinks=1"},
	"flash_attn_join":        {"heads=4/1 K=64 V=128 page=32 gap=0 long=1 sharp=false parts=32"},
	"quantize_q8":            {"rows=7 cols=288 gap=5 scale=1"},
	"mul_mat":                {"M=65 K=1024 N=17 gap=0"},
	"mul_mat_cm":             {"Q8_0 M=260 K=288 N=129 gap=0 slices=0", "Q4_K M=512 K=256 N=17 gap=4 slices=1"},
	"mul_mat_q_cm":           {"M=300 K=1024 N=70 gap=0", "M=100 K=512 N=40 gap=3 split=64x64x32x16x32x2hw"},
	"tile_f16":               {"N=131 K=1030 gap=0 size=10000"},
	"tile_f16_wide":          {"rows=131 cols=1028 gap=0 size=1"},
	"tile_f16_norm":          {"rows=131 cols=1028 gap=0 size=1", "rows=3 cols=100 gap=4 size=1"},
	"tile_f16_swiglu":        {"rows=131 cols=1028 gap=0 size=1", "rows=3 cols=100 gap=4 size=1"},
	"tile_f16_geglu":         {"rows=131 cols=1028 gap=0 size=1"},
	"dequant_f16":            {"M=133 K=1024"},
	"rms_norm":               {"rows=17 cols=4097 gap=0 in place=false scale=1", "rows=4 cols=1024 gap=8 in place=true scale=1"},
	"soft_max":               {"rows=17 cols=4097 scale=0.125 in place=false", "large, masked and equal values"},
	"rope":                   {"rows=33 heads=8 head=128 rope=128 gap=256 neox=false", "rows=7 heads=4 head=80 rope=20 gap=3 neox=true"},
	"kv_append":              {"heads=2 K=128 V=128 gap=0 scale=1", "heads=2 K=16 V=8 gap=0 scale=2e-05"},
	"kv_append_q8_0":         {"heads=2 K=128 V=128 gap=0 scale=1", "heads=3 K=96 V=64 gap=4 scale=-1"},
	"kv_append_q4_0":         {"heads=2 K=128 V=128 gap=0 scale=1", "heads=3 K=96 V=64 gap=4 scale=-1"},
	"flash_attn": {"heads=8/2 K=64 V=64 page=32 gap=0 long=0 sharp=false", "heads=4/2 K=128 V=128 page=16 gap=0 long=0 sharp=false",
		"heads=2/2 K=32 V=32 page=5 gap=0 long=0 sharp=false", "heads=4/2 K=128 V=128 page=32 gap=0 long=0 sharp=false window=50 cap=2 sinks=1"},
	"flash_attn_q8_0":     {"heads=8/2 K=64 V=64 page=32 gap=0 long=0 sharp=false", "heads=4/2 K=128 V=128 page=32 gap=0 long=0 sharp=false window=50 cap=2 sinks=1"},
	"flash_attn_q4_0":     {"heads=8/2 K=64 V=64 page=32 gap=0 long=0 sharp=false", "heads=4/2 K=128 V=128 page=32 gap=0 long=0 sharp=false window=50 cap=2 sinks=1"},
	"flash_attn_cm_f16":   {"heads=8/2 K=64 V=64 page=32 gap=0 long=0 sharp=false rows=65 first=0", "heads=2/2 K=128 V=128 page=64 gap=4 long=0 sharp=false rows=64 first=333"},
	"flash_attn_cm_q8_0":  {"heads=4/2 K=64 V=64 page=32 gap=0 long=0 sharp=false window=100 cap=2 sinks=1 rows=65 first=333"},
	"flash_attn_cm_q4_0":  {"heads=4/2 K=64 V=64 page=32 gap=0 long=0 sharp=false window=100 cap=2 sinks=1 rows=65 first=333"},
	"topk_moe":            {"rows=17 experts=128 used=8 sigmoid=false late=false groups=0 bias=false", "rows=9 experts=256 used=8 sigmoid=true late=false groups=8 bias=true"},
	"topk_moe_held":       {"rows=17 experts=128 used=8 sigmoid=false late=false groups=0 bias=false", "rows=7 experts=32 used=4 sigmoid=false late=true groups=0 bias=false"},
	"topk_moe_routed":     {"cols=2048 rows=1 experts=128 used=8 sigmoid=false late=false groups=0 bias=false"},
	"topk_moe_routed_f32": {"cols=2048 rows=1 experts=128 used=8 sigmoid=false late=false groups=0 bias=false", "cols=1024 rows=3 experts=256 used=8 sigmoid=true late=false groups=8 bias=true"},
	"group_experts":       {"pairs=1000 experts=60 behind 0"},
	"mul_mat_vec_id":      {"M=7 K=1024 rows=5 used=3 experts=4 gap=4 first=0"},
	"mul_mat_id_cm":       {"M=65 K=512 rows=40 used=4 experts=5 gap=3 first=0 one absent"},
	"mul_mat_id":          {"M=7 K=1024 rows=70 used=1 experts=3 gap=4 first=1"},
	"sum_experts":         {"rows=33 used=8 cols=172 gap=4 residual=true"},
	"experts_there":       {"experts=60 count=8 absent=7", "experts=8 count=17 absent=0"},
	"sigmoid_mul":         {"rows=9 cols=192 gates=384 group=64 gap=8"},
	"ssm_conv":            {"rows=33 cols=100 taps=4 gap=3"},
	"gated_delta_net":     {"rows=17 heads=4/2 of 32 tiled=true gap=4 together=true"},
	"mul_mat_heads":       {"heads=4 M=65 K=1024 N=3 gaps=8,16"},
	"cpy":                 {"rows=33 cols=64 gaps=128,512"},
	"swiglu_oai":          {"count=4097 scale=8"},
	"swiglu":              {"count=4097 scale=1", "count=172 scale=30"},
	"geglu":               {"count=4097 scale=1", "count=172 scale=30"},
	"add":                 {"count=4097 cols=4097 in place=false", "count=516 cols=172 in place=true"},
	"checksum":            {"count=2049"},
	"argmax":              {"ties and NaN rows=9 cols=1000", "normal rows=3 cols=4097"},
	"argmax_joined":       {"ties and NaN rows=9 cols=5003", "normal rows=3 cols=4097"},
}

// Quick returns a few cases for every kernel: a self-test of seconds.
func Quick() []Case {
	return slices.DeleteFunc(Cases(), func(c Case) bool {
		k, ok := shaders.Lookup(c.Kernel)
		return !ok || !slices.Contains(quickShapes(k), c.Shape)
	})
}

// common are the types that most models have, of the cache and of the weights; the last is taken before the first.
var common = []gguf.Type{gguf.F16, gguf.Q4_K}

// Sample returns one case of Quick for one kernel of each way to compute each op, of a common type where there are several:
// on a device that takes a second to compile a pipeline the others would take minutes.
func Sample() []Case {
	type way struct{ op, variant string }
	chosen := map[way]*shaders.Kernel{}
	all := shaders.Kernels()
	for i := range all {
		k := &all[i]
		w := way{k.Op, k.Variant}
		if old := chosen[w]; old == nil || slices.Index(common, k.Type) > slices.Index(common, old.Type) {
			chosen[w] = k
		}
	}
	return slices.DeleteFunc(Quick(), func(c Case) bool {
		k, ok := shaders.Lookup(c.Kernel)
		if !ok || chosen[way{k.Op, k.Variant}] == nil || chosen[way{k.Op, k.Variant}].Name != k.Name {
			return true
		}
		chosen[way{k.Op, k.Variant}] = nil // its first case is enough
		return false
	})
}

func quickShapes(k *shaders.Kernel) []string {
	for _, name := range []string{k.Name, k.Op + "_" + k.Variant} {
		if own, ok := quick[name]; ok {
			return own
		}
	}
	return quick[k.Op]
}
