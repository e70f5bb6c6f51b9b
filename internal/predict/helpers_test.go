package predict_test

import (
	"math"
	"path/filepath"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/tools/synth/synthetic"
)

func open(t *testing.T, o synthetic.Options) (*arch.Hyper, *pack.Model) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, o); err != nil {
		t.Fatal(err)
	}
	m, err := pack.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	return h, m
}

// preset opens a model of full size that holds no weights.
func preset(t *testing.T, name string) (*arch.Hyper, *pack.Model) {
	t.Helper()
	return open(t, synthetic.Options{Arch: "llama", Preset: name, Hollow: true})
}

func mustMake(t *testing.T, h *arch.Hyper, m *pack.Model, b plan.Budget) *plan.Plan {
	t.Helper()
	if b.KVType == 0 {
		b.KVType = gguf.F16
	}
	p, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s: found %.4g, wanted %.4g within %.0f %%", what, got, want, 100*within)
	}
}
