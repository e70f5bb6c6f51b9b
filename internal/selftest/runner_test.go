package selftest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/vk/vktest"
)

// openRunner opens a runner on the tests' device.
func openRunner(t *testing.T, seed uint64) *Runner {
	t.Helper()
	dev := vktest.Open(t)
	k, err := kernels.New(dev, kernels.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	r, err := New(dev, k, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// What a broken kernel would leave behind is reported, each kind of it.
func TestRunnerCanFail(t *testing.T) {
	r := openRunner(t, 1) // one seed: some of the errors below are small
	for _, c := range []struct {
		name   string
		on     Case
		want   string
		tamper func(j *job, got []byte)
	}{
		{"wrong value", MulMat(gguf.Q4_K, 64, 256, 1, 0), "NMSE of dst", func(j *job, got []byte) { got[j.wants[0].at.off+3] ^= 0x80 }},
		{"imprecise value", MulMat(gguf.Q4_K, 64, 256, 1, 0), "NMSE of dst", func(j *job, got []byte) { got[j.wants[0].at.off+2] ^= 1 }},
		{"never written", MulMat(gguf.Q8_0, 100, 256, 9, 4), "dst[0][1] is NaN", func(j *job, got []byte) {
			copy(got[j.wants[0].at.off+4:], []byte{0xc1, 0x7f, 0xc1, 0x7f})
		}},
		{"past the end", GLU("swiglu", 65, 1), "which is no output", func(j *job, got []byte) { got[j.wants[0].at.off+j.wants[0].at.n]++ }},
		{"gap of a stride", RMSNorm(NormShape{Rows: 3, Cols: 64, Gap: 8, Size: 1}), "which is no output", func(j *job, got []byte) { got[j.wants[0].at.off+4*64]++ }},
		{"input changed", Add(65, 65, false), "which is no output", func(j *job, got []byte) { got[guardBytes+20]++ }},
		{"one bit", GetRows(gguf.Q6_K, 5, 256, 1, 0), "dst[0][0] is", func(j *job, got []byte) { got[j.wants[0].at.off] ^= 1 }},
		{"rounding of the cache", KVAppend(gguf.F16, 2, 8, 8, 0, 1), "of page 0", func(j *job, got []byte) { got[j.wants[0].at.off+48] ^= 1 }},
		{"wrong column", Argmax("ties and NaN", 9, 1000, false, true), "of dst", func(j *job, got []byte) { got[j.wants[0].at.off]++ }},
		{"batch differs from rows", AttnSameBits(gguf.F16, AttnShape{KeyLen: 64}), "the same bits", func(j *job, got []byte) { got[j.twins[0][0].at.off] ^= 1 }},
		{"second run differs", SoftMax(3, 64, 0.125, false), "of a second run", func(j *job, got []byte) { got[j.wants[0].at.off] ^= 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.tamper = c.tamper
			defer func() { r.tamper = nil }()
			_, err := r.Run(t.Context(), &c.on)
			var miss *MismatchError
			if !errors.As(err, &miss) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want a mismatch with %q", err, c.want)
			}
			r.tamper = nil
			if _, err := r.Run(t.Context(), &c.on); err != nil {
				t.Errorf("untampered: %v", err)
			}
		})
	}
	t.Run("wrong reference", func(t *testing.T) {
		c := Rope(5, 3, 64, 64, 0, false)
		build := c.build
		c.build = func(j *job) error {
			err := build(j)
			x := j.wants[0].mat
			x.Row(1)[0], x.Row(1)[1] = x.Row(1)[1], x.Row(1)[0]
			return err
		}
		if _, err := r.Run(context.Background(), &c); err == nil {
			t.Error("a pair rotated the wrong way went through")
		}
	})
}
