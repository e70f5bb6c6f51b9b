package conform

import (
	"fmt"
	"slices"
	"testing"

	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
	"leat/vk"
	"leat/vk/vktest"
)

// Attention of few rows as other devices share it out: a CPU takes one position at a time, others several.
func TestAttnRuns(t *testing.T) {
	dev := vktest.Open(t)
	for share, names := range map[uint32][]string{
		8: {"flash_attn_joined_f16/heads=6/2 K=64 V=64 page=32 gap=0 long=0 sharp=false",
			"flash_attn_joined_f16/joins heads=8/1 K=64 V=128 page=32 gap=0 long=1 sharp=false parts=32",
			"flash_attn_joined_q8_0/heads=4/2 K=128 V=128 page=32 gap=0 long=0 sharp=false window=50 cap=2 sinks=1"},
		4: {"flash_attn_joined_f16/heads=2/2 K=32 V=32 page=256 gap=0 long=1 sharp=false window=700 cap=0 sinks=0",
			"flash_attn_joined_f32/heads=4/2 K=64 V=64 page=16 gap=0 long=0 sharp=false window=65 cap=0 sinks=0"},
	} {
		t.Run(fmt.Sprintf("%d lanes a position", share), func(t *testing.T) { testAttnRuns(t, dev, share, names) })
	}
}

func testAttnRuns(t *testing.T, dev *vk.Device, share uint32, names []string) {
	k, err := kernels.New(dev, kernels.Options{Alter: func(row *shaders.Kernel, spec []uint32) ([]byte, []uint32) {
		if row.Op != "flash_attn" || row.Variant != shaders.Joined && row.Variant != shaders.Split {
			return row.SPIRV, spec
		}
		eights := (max(spec[1], spec[2]) + 8*share - 1) / (8 * share)
		return row.SPIRV, []uint32{spec[0], spec[1], spec[2], share, min(8/eights, shaders.PartPositions*share/shaders.SplitLanes)}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	s, err := selftest.New(dev, k, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ran := 0
	for _, c := range Cases() {
		if !slices.Contains(names, c.Kernel+"/"+c.Shape) || !s.Can(&c) {
			continue
		}
		if _, err := run(t.Context(), s, &c); err != nil {
			t.Errorf("%d lanes a position: %v", share, err)
		}
		ran++
	}
	if row, _ := shaders.Lookup("flash_attn_joined_f16"); ran != len(names) && k.CanRun(row) {
		t.Errorf("%d lanes a position: %d cases ran, want %d", share, ran, len(names))
	}
}

// Drivers may run a row's lanes as several subgroups, smaller ones than they tell of: they meet all the same.
func TestSmallSubgroups(t *testing.T) {
	dev := vktest.Open(t)
	k, err := kernels.New(dev, kernels.Options{Alter: func(row *shaders.Kernel, spec []uint32) ([]byte, []uint32) {
		if row.Name == "topk_moe_held" {
			spec = append([]uint32{4 * uint32(dev.Physical.Limits.Subgroup)}, spec[1:]...)
		}
		return row.SPIRV, spec
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	s, err := selftest.New(dev, k, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cases := slices.DeleteFunc(Cases(), func(c selftest.Case) bool {
		return c.Kernel != "topk_moe_held" || !s.Can(&c) || 4*dev.Physical.Limits.Subgroup > 128
	})
	t.Run("topk_moe_held", func(t *testing.T) { runCases(t, s, cases, func(selftest.Result) {}) })
}
