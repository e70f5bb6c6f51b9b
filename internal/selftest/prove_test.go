package selftest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/kernels/cache"
	"leat/shaders"
	"leat/vk"
	"leat/vk/vktest"
)

// decodes records what a step of few rows does, with every variant of it.
func decodes(t gguf.Type, n int) Case {
	c := AttnFew(gguf.F16, AttnShape{Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64, Page: 32}, true)
	attend := c.build
	c.Kernel, c.MaxNMSE = "a step", nmseRounded*10
	c.build = func(j *job) error {
		if err := attend(j); err != nil {
			return err
		}
		const d, f = 256, 512
		x, w, normed := j.normal(n, d, 0), j.normal(1, d, 0), shape(n, d, 0)
		gate, _, err := j.weights(t, 2*f, d, 1)
		if err != nil {
			return err
		}
		in, scale, out, glu := j.mat(x), j.mat(w), j.space(normed), j.space(shape(n, f, 0))
		j.spare = append(j.spare, out, glu)
		prepare, attn := fewRowsBuffers(j, f, 4, 64), j.record
		half, _ := t.RowBytes(d)
		j.record = func(r *kernels.Recorder) error {
			if err := attn(r); err != nil {
				return err
			}
			prepare(r)
			err := kernels.NormRows(r, kernels.Norm{Multiplied: true, RMSNormArgs: shaders.RMSNormArgs{X: j.addr(in), W: j.addr(scale), Dst: j.addr(out), Rows: uint32(n), Cols: d, XStride: d, DstStride: d, Eps: 1e-5}})
			if err != nil {
				return err
			}
			p := kernels.Products{Type: t, X: j.addr(out), N: uint32(n), K: d, XStride: d, GLU: true, DstStride: f,
				Of: [3]kernels.Matrix{{W: j.addr(gate), Dst: j.addr(glu), M: f}, {W: j.addr(gate) + uint64(half)*f, M: f}}}
			_, err = kernels.Multiply(r, &p)
			return err
		}
		return nil
	}
	return c
}

// Every pipeline of a step is tested at its first use and then known, in the next run too; a broken one is not used, whatever is wrong with it,
// and what is computed is right all the same.
func TestProve(t *testing.T) { t.Run("a step", testProve) }

func testProve(t *testing.T) {
	dev := vktest.Open(t)
	if !kernels.HasFewRowKernels(dev.Physical, dev.Features) {
		t.Skip("the device has no variants for few rows")
	}
	team := teamOf(t, dev)
	other := func(name string) []byte {
		k, ok := shaders.Lookup(name)
		if !ok {
			t.Fatal(name)
		}
		return k.SPIRV
	}
	for name, tt := range map[string]struct {
		broken string
		alter  func(row *shaders.Kernel, spec []uint32) ([]byte, []uint32)
	}{
		"none": {},
		"another type's code": {team + "_q4_k", func(_ *shaders.Kernel, spec []uint32) ([]byte, []uint32) {
			return other(team + "_q5_k"), spec
		}},
		"a helper": {"quantize_q8", func(_ *shaders.Kernel, spec []uint32) ([]byte, []uint32) { return other("swiglu"), spec }},
		"a constant": {"rms_norm_q8", func(row *shaders.Kernel, spec []uint32) ([]byte, []uint32) {
			return row.SPIRV, []uint32{spec[0] / 2, spec[1]}
		}},
		"attention": {"flash_attn_joined_f16", func(_ *shaders.Kernel, spec []uint32) ([]byte, []uint32) {
			return other("flash_attn_split_f16"), spec // the parts are left as they are
		}},
		"no code": {"rms_norm_q8", func(*shaders.Kernel, []uint32) ([]byte, []uint32) { return []byte("gibberish"), nil }},
	} {
		t.Run(name, func(t *testing.T) {
			folder := cache.Open(t.TempDir())
			tests := 0
			o := kernels.Options{Cache: folder, Test: func(k *kernels.Kernels, v kernels.Variant) error {
				tests++
				return Prove(k, v)
			}}
			if tt.alter != nil {
				o.Alter = func(row *shaders.Kernel, spec []uint32) ([]byte, []uint32) {
					if row.Name == tt.broken {
						return tt.alter(row, spec)
					}
					return row.SPIRV, spec
				}
			}
			var first []kernels.TestResult
			for run := range 2 {
				results := testedBy(t, dev, o, 1, 3)
				if run == 0 {
					first = results
					checkResults(t, results, tt.broken, team)
					continue
				}
				if !slices.Equal(first, results) {
					t.Errorf("the next run knows\n%v, want\n%v", results, first)
				}
			}
			if want := len(first); name != "no code" && tests != want || name == "no code" && tests != want-1 {
				t.Errorf("%d tests, want one for each of the %d results, in the first run", tests, want)
			}
		})
	}
}

// testedBy runs steps of so many rows, which must be right, and returns which kernels were tested for them.
func testedBy(t *testing.T, dev *vk.Device, o kernels.Options, rows ...int) []kernels.TestResult {
	t.Helper()
	k, err := kernels.New(dev, o)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	s, err := New(dev, k, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, n := range rows {
		c := decodes(gguf.Q4_K, n)
		if _, err := s.Run(t.Context(), &c); err != nil {
			t.Errorf("%d rows: %v", n, err)
		}
	}
	results, _ := k.Tested()
	return results
}

// teamOf is the product that the step decodes takes here, but for the type.
func teamOf(t *testing.T, dev *vk.Device) string {
	t.Helper()
	results := testedBy(t, dev, kernels.Options{Test: Prove}, 1)
	for _, r := range results {
		if team, ok := strings.CutSuffix(r.Kernel, "_q4_k"); ok && strings.HasPrefix(team, "mul_mat_vec_") {
			return team
		}
	}
	t.Fatalf("no product was tested: %v", results)
	return ""
}

func checkResults(t *testing.T, results []kernels.TestResult, broken, team string) {
	t.Helper()
	var names []string
	for _, r := range results {
		names = append(names, r.Kernel)
		if (r.Error != "") != (r.Kernel == broken) {
			t.Errorf("%s %s: error %q", r.Kernel, r.Pipeline, r.Error)
		}
	}
	wants := []string{"flash_attn_joined_f16", team + "_q4_k", "quantize_q8", "rms_norm_q8"}
	if broken == "mul_mat_vec_longs_q4_k" {
		wants = append(wants, "mul_mat_vec_int8_q4_k") // its stand-in
	}
	if broken == "flash_attn_joined_f16" {
		wants = append(wants, "flash_attn_split_f16", "flash_attn_join") // its stand-ins
	}
	for _, want := range wants {
		if broken == "quantize_q8" && strings.HasPrefix(want, "mul_mat_vec_") {
			continue
		}
		if !slices.Contains(names, want) {
			t.Errorf("%s was not tested: %v", want, names)
		}
	}
}

// A lost device is no verdict in this run, but the next one doesn't try that kernel again. For want of memory to test with
// a kernel is not used in this run alone.
func TestProveFatal(t *testing.T) { t.Run("quantize_q8", testProveFatal) }

func testProveFatal(t *testing.T) {
	dev := vktest.Open(t)
	folder := cache.Open(t.TempDir())
	var fault error
	run := func() error {
		k, err := kernels.New(dev, kernels.Options{Cache: folder, Test: func(k *kernels.Kernels, v kernels.Variant) error {
			if fault != nil {
				return fault
			}
			return Prove(k, v)
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		s, err := New(dev, k, 5)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c := QuantizeQ8(1, 32, 0, 1)
		_, first := s.Run(t.Context(), &c)
		if _, again := s.Run(t.Context(), &c); fmt.Sprint(first) != fmt.Sprint(again) && first != nil {
			t.Errorf("first %v, then %v", first, again)
		}
		return first
	}
	var broken *kernels.BrokenError
	fault = &vk.CallError{Call: "vkAllocateMemory", Result: vk.ErrOutOfDeviceMemory}
	if err := run(); !errors.As(err, &broken) {
		t.Errorf("without memory: the error is %v, want a BrokenError", err)
	}
	fault = nil
	if err := run(); err != nil {
		t.Errorf("with memory again: %v", err)
	}
	if err := kernels.ForgetTests(folder, dev.Physical); err != nil {
		t.Fatal(err)
	}
	fault = &vk.CallError{Call: "vkQueueSubmit", Result: vk.ErrDeviceLost}
	if err := run(); !errors.Is(err, vk.ErrDeviceLost) {
		t.Errorf("the error is %v, want that of the lost device", err)
	}
	fault = nil
	if err := run(); !errors.As(err, &broken) {
		t.Errorf("after it: the error is %v, want a BrokenError", err)
	}
}

// Whatever pipelines a device may want have cases that pass, each of them at every number of rows.
func TestProofs(t *testing.T) {
	dev := vktest.Open(t)
	k, err := kernels.New(dev, kernels.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	row := func(name string) *shaders.Kernel {
		r, ok := shaders.Lookup(name)
		if !ok {
			t.Fatal(name)
		}
		return r
	}
	q4k, f16 := row("mul_mat_vec_int8_q4_k"), row("mul_mat_vec_wide_f16")
	lanes := min(shaders.HeldLanes, uint32(dev.Physical.Limits.Subgroup))
	variants := []kernels.Variant{
		{Row: q4k, Cols: 8, Tile: kernels.Tile{Rows: 1, Team: 64, Unroll: 2, Lanes: 64}},
		{Row: q4k, Cols: 1, Tile: kernels.Tile{Rows: 2, Team: 8, Unroll: 2, Lanes: 256}, GLU: shaders.GLUBytes},
		{Row: f16, Cols: 4, Tile: kernels.Tile{Rows: 2, Team: 64, Unroll: 2, Lanes: 64}, GLU: shaders.GLUFloats},
		{Row: row("mul_mat_vec_persistent_q4_k"), Cols: 2, Tile: kernels.Tile{Rows: 2, Team: 64, Unroll: 2, Lanes: 128}, GLU: shaders.GLUBytes},
		{Row: row("mul_mat_vec_rope_q4_k"), Cols: 1, Tile: kernels.Tile{Rows: 1, Team: 64, Unroll: 2, Lanes: 256}, Rope: kernels.RopeConstants{KeyLen: 128, ValLen: 128, RopeDim: 128}},
		{Row: row("mul_mat_vec_rope_q6_k"), Cols: 8, Tile: kernels.Tile{Rows: 4, Team: 128, Unroll: 2, Lanes: 128}, Rope: kernels.RopeConstants{KeyLen: 512, ValLen: 512, RopeDim: 64, Neox: true}},
		{Row: row("mul_mat_vec_rope_q8_0"), Cols: 4, Tile: kernels.Tile{Rows: 4, Team: 32, Unroll: 1, Lanes: 64}, Rope: kernels.RopeConstants{KeyLen: 80, ValLen: 40, RopeDim: 20, CacheF32: true}},
		{Row: row("rms_norm_q8"), Lanes: 64, Per: 2},
		{Row: row("rope_kv_f16")}, {Row: row("argmax_joined")},
		{Row: row("rope_norm_kv_f16"), RowLanes: 16}, {Row: row("rope_norm_kv_q8_0"), RowLanes: 32}, {Row: row("rope_norm_kv_q4_0"), RowLanes: 64},
		{Row: row("topk_moe_held"), Lanes: lanes, Per: 1}, {Row: row("topk_moe_held"), Lanes: lanes, Per: 4}, {Row: row("topk_moe_held"), Lanes: lanes, Per: shaders.MaxPer},
		{Row: row("topk_moe_routed_f32"), Tile: kernels.Tile{Rows: 1, Team: 64, Unroll: 4, Lanes: 128}, Per: 4, RowLanes: 128},
		{Row: row("topk_moe_routed_f16"), Tile: kernels.Tile{Rows: 1, Team: 8, Unroll: 8, Lanes: 64}, Per: 2, RowLanes: 128},
		{Row: row("dequant_f16_q6_k")}, {Row: row("tile_f16")},
		{Row: row("tile_f16_wide"), Lanes: 128, Per: 1}, {Row: row("tile_f16_norm"), Lanes: 128, Per: 2}, {Row: row("tile_f16_swiglu"), Lanes: 128, Per: 3}, {Row: row("tile_f16_geglu"), Lanes: 128, Per: 1},
		{Row: row("flash_attn_split_f32"), Group: 4, KeyLen: 64, ValLen: 64, Run: 1}, {Row: row("flash_attn_joined_q8_0"), Group: 3, KeyLen: 128, ValLen: 96, Run: 1},
		{Row: row("mul_mat_cm"), CMTile: kernels.OwnCMTile(512)}, {Row: row("mul_mat_cm"), CMTile: kernels.OwnCMTile(64)}, {Row: row("mul_mat_q_cm_q4_k"), CMTile: kernels.CMTile{BM: 64, BN: 64, WM: 32, WN: 16}},
		{Row: row("flash_attn_cm_f16"), KeyLen: 128, ValLen: 128}, {Row: row("flash_attn_cm_f16"), KeyLen: 64, ValLen: 96},
	}
	for _, v := range variants {
		if !k.CanRun(v.Row) {
			continue
		}
		t.Run(v.Row.Name, func(t *testing.T) {
			if err := Prove(k, v); err != nil {
				t.Errorf("%+v: %v", v, err)
			}
		})
	}
}
