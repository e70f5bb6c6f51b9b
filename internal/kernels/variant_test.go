package kernels

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"leat/gguf"
	"leat/shaders"
	"leat/vk/vktest"
)

// Every variant of the table is some rule's, and an op's last rule is the plain one.
func TestRules(t *testing.T) {
	rules := Rules()
	for _, row := range shaders.Kernels() {
		if !mustTest(&row) {
			continue
		}
		known := slices.ContainsFunc(rules, func(r *Rule) bool {
			return slices.ContainsFunc(r.kernels, func(name string) bool { return row.Name == name || strings.HasPrefix(row.Name, name+"_") })
		})
		if !known {
			t.Errorf("%s is in no rule", row.Name)
		}
	}
	last := map[string]*Rule{}
	for _, r := range rules {
		if before := last[r.Op]; before != nil && before.Variant == shaders.FP32 {
			t.Errorf("%s: %s stands after the plain variant", r.Op, r.Variant)
		}
		if (r.lacks == nil) != (r.Needs == "") {
			t.Errorf("%s %s needs %q of a device, and can tell: %v", r.Op, r.Variant, r.Needs, r.lacks != nil)
		}
		last[r.Op] = r
	}
	for op, r := range last {
		if r.Variant != shaders.FP32 {
			t.Errorf("%s: the last variant is %s, want the plain one", op, r.Variant)
		}
	}
}

// What failed its test shows in the rule it takes out.
func TestChoices(t *testing.T) {
	dev := vktest.Open(t)
	k, err := New(dev, Options{Test: func(*Kernels, Variant) error { return errors.New("wrong") }})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.get(joinChoice); err == nil {
		t.Fatal("it passed")
	}
	for _, c := range k.Choices() {
		if got := strings.Join(c.Failed, " "); (got == "flash_attn_join") != (c.Variant == shaders.Split) || c.Variant != shaders.Split && got != "" {
			t.Errorf("%s %s: failed %q", c.Op, c.Variant, got)
		}
	}
}

// Where a pipeline for 3 rows fails, those for 1 that passed before are not used either: one token's results would depend on how many others
// share its step.
func TestWholeRowFails(t *testing.T) {
	dev := vktest.Open(t)
	if !HasFewRowKernels(dev.Physical, dev.Features) {
		t.Skip("the device has no variants for few rows")
	}
	k, err := New(dev, Options{Test: func(_ *Kernels, v Variant) error {
		if v.Cols > 1 && v.Row.Type == gguf.Q4_K {
			return errors.New("wrong")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	r := k.Recorder(nil)
	r.Rows.Role, r.Memory.Q8 = Decode, Scratch{256, 1 << 20}
	takes := func(typ gguf.Type, n uint32) bool {
		return ProductVariant(r, &Products{Type: typ, X: 256, N: n, K: 256, XStride: 256, Of: [3]Matrix{{W: 256, Dst: 256, M: 64}}, DstStride: 64}) != shaders.FP32
	}
	for _, step := range []struct {
		typ  gguf.Type
		n    uint32
		want bool
	}{{gguf.Q4_K, 1, true}, {gguf.Q6_K, 1, true}, {gguf.Q4_K, 3, false}, {gguf.Q4_K, 1, false}, {gguf.Q4_K, 8, false}, {gguf.Q6_K, 2, true}} {
		if got := takes(step.typ, step.n); got != step.want {
			t.Errorf("%v, %d rows: taken %v, want %v", step.typ, step.n, got, step.want)
		}
	}
}
