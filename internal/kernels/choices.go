package kernels

import (
	"maps"
	"slices"
	"strings"

	"leat/shaders"
)

// Rule is one variant of an op and when it is chosen; of an op's rules the first that holds is taken. docs/kernels.md has
// the same table. What a rule says of shapes is decided where the op is recorded.
type Rule struct {
	Op, Variant string
	When        string                  // of the step and the shapes; "": always
	By          string                  // where that is decided
	needs       func(k *Kernels) string // what the device lacks; "": nothing
	kernels     []string                // rows of the table it can't do without, up to their type
}

// Rules are all choices there are.
var Rules = []Rule{
	{"mul_mat_vec", shaders.Turned, "as int8, a step of up to 8 rows: queries, keys and values that turn, a multiple of 4 values, into a cache of F16 or F32", "Recorder.TakesTurned", lacksTurns, []string{"mul_mat_vec_rope", "quantize_q8"}},
	{"mul_mat_vec", shaders.Straight, "as int8, weights Q4_0, Q8_0, Q4_K, Q5_K or Q6_K, rows of up to 32768 values in whole groups of 256, with Q6_K of 512", "Recorder.Takes", lacksStraight, []string{"mul_mat_vec_straight", "quantize_q8"}},
	{"mul_mat_vec", shaders.Longs, "as int8", "Kernels.Team", lacksLongs, []string{"mul_mat_vec_longs", "quantize_q8"}},
	{"mul_mat_vec", shaders.Int8, "a step of up to 16 rows, without cooperative matrices any, weights in blocks, rows of whole blocks of 32", "Recorder.Takes", lacksFew, []string{"mul_mat_vec_int8", "quantize_q8"}},
	{"mul_mat_vec", shaders.Wide, "a step of up to 16 rows, without cooperative matrices any, weights F32, F16 or BF16, rows of a multiple of 8 values", "Recorder.Takes", lacksFew, []string{"mul_mat_vec_wide"}},
	{"mul_mat_vec", shaders.FP32, "up to 8 rows", "Recorder.MulMat", nil, nil},
	{"mul_mat_vec_id", shaders.Int8, "a step of up to 16 rows, without cooperative matrices any, weights in blocks, rows of whole blocks of 32", "Recorder.TakesExperts", lacksFew, []string{"mul_mat_vec_id_int8", "quantize_q8"}},
	{"mul_mat_vec_id", shaders.FP32, "up to 8 rows", "Recorder.MulMatID", nil, nil},
	{"mul_mat_id", shaders.CM, "17 rows or more, weights in blocks, rows of 64 values or more in whole blocks of 32, memory for X in halves", "Recorder.TakesExperts", lacksMatrix, []string{"mul_mat_id_cm", "tile_f16"}},
	{"mul_mat_id", shaders.FP32, "", "Recorder.MulMatID", nil, nil},
	{"mul_mat", shaders.BlocksCM, "as cm, up to 2048 rows, rows of whole blocks of 32: weights Q4_K and Q5_K, of other blocks matrices that are small or too large to decode at once", "Recorder.worthDecoding", lacksMatrix, []string{"mul_mat_q_cm", "tile_f16"}},
	{"mul_mat", shaders.CM, "17 rows or more, of 64 values or more, memory for both sides in halves", "Recorder.halves", lacksMatrix, []string{"mul_mat_cm", "tile_f16", "dequant_f16"}},
	{"mul_mat", shaders.FP32, "", "Recorder.MulMat", nil, nil},
	{"flash_attn", shaders.CM, "17 rows or more of one sequence, no F32 cache, heads of up to 128 in multiples of 16, pages of a multiple of 32", "Recorder.runs", lacksMatrix, []string{"flash_attn_cm"}},
	{"flash_attn", shaders.Joined, "a step of up to 8 rows, heads of up to 256, and of 32 values a lane of a subgroup", "Recorder.joined", lacksFew, []string{"flash_attn_joined"}},
	{"flash_attn", shaders.Split, "a step of up to 8 rows, heads of up to 256, and of 32 values a lane of a subgroup", "Recorder.splits", lacksFew, []string{"flash_attn_split", "flash_attn_join"}},
	{"flash_attn", shaders.FP32, "", "Recorder.FlashAttn", nil, nil},
	{"rms_norm", shaders.Q8, "a step of up to 16 rows, without cooperative matrices any, weights are multiplied by the output, rows of whole blocks of 32", "Recorder.RMSNormMultiplied", lacksFew, []string{"rms_norm_q8"}},
	{"rms_norm", shaders.FP32, "", "Recorder.RMSNorm", nil, nil},
	{"rope", shaders.NormKV, "as kv, behind a norm of each head, heads of up to 256", "Recorder.TakesRopeNormKV", nil, []string{"rope_norm_kv"}},
	{"rope", shaders.KV, "keys and values of one input, a multiple of 4 values turned", "Recorder.TakesRopeKV", nil, []string{"rope_kv"}},
	{"rope", shaders.FP32, "", "Recorder.Rope", nil, nil},
	{"topk_moe", shaders.Routed, "up to 8 rows, behind a norm and the product of a router of F32, F16 or BF16, rows of whole blocks of 32, up to 512 experts", "Recorder.TakesRouted", lacksRouted, []string{"topk_moe_routed"}},
	{"topk_moe", shaders.Held, "up to 16 experts for each of a subgroup's first 32 lanes", "Recorder.TopKMoE", lacksSubgroups, []string{"topk_moe_held"}},
	{"topk_moe", shaders.FP32, "", "Recorder.TopKMoE", nil, nil},
	{"argmax", shaders.Joined, "memory for its parts", "Recorder.Argmax", nil, []string{"argmax_joined"}},
	{"argmax", shaders.FP32, "", "Recorder.Argmax", nil, nil},
}

func lacksFew(k *Kernels) string {
	var lacks []string
	if f := &k.dev.Features; !f.IntDotProduct {
		lacks = append(lacks, "dot products of bytes")
	}
	if l := lacksSubgroups(k); l != "" {
		lacks = append(lacks, l)
	}
	return strings.Join(lacks, " and ")
}

func lacksSubgroups(k *Kernels) string {
	if !k.dev.Features.SubgroupArithmetic || k.dev.Physical.Limits.Subgroup < minSubgroup {
		return "subgroup arithmetic"
	}
	return ""
}

func lacksLongs(k *Kernels) string {
	if lacks := lacksFew(k); lacks != "" || k.longs.Load() {
		return lacks
	}
	if !k.dev.Features.Int64 {
		return "integers of 64 bits"
	}
	return "loads that cost a CPU's time"
}

func lacksStraight(k *Kernels) string {
	if lacks := lacksLongs(k); lacks != "" || k.straight.Load() {
		return lacks
	}
	return "subgroups of 8"
}

func lacksMatrix(k *Kernels) string {
	if k.matrix == 0 {
		return "cooperative matrices of 16 x 16 x 16 halves"
	}
	return ""
}

// Choice is a rule on a device.
type Choice struct {
	Rule
	Lacks  string   // what the device lacks for it; "": nothing
	Failed []string // names of its kernels that failed their self-test or crashed the driver: others are used in their place
}

// Choices lists all rules and what the device makes of them.
func (k *Kernels) Choices() []Choice {
	var all []Choice
	failed := k.guard.failed()
	results, _ := k.Tested()
	for _, t := range results {
		if t.Error != "" {
			failed[t.Kernel] = t.Error
		}
	}
	for _, r := range Rules {
		c := Choice{Rule: r}
		if r.needs != nil {
			c.Lacks = r.needs(k)
		}
		for _, name := range slices.Sorted(maps.Keys(failed)) {
			if slices.ContainsFunc(r.kernels, func(of string) bool { return name == of || strings.HasPrefix(name, of+"_") }) {
				c.Failed = append(c.Failed, name)
			}
		}
		all = append(all, c)
	}
	return all
}
