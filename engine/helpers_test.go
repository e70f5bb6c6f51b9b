package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/shaders"
	"leat/tools/testdata"
	"leat/vk/vktest"
)

// reference is a NAME.deq.json with its NAME.deq.f32: logits of the same weights in
// float32, made by another engine.
type reference struct {
	Vocab  int        `json:"n_vocab"`
	Rows   int        `json:"rows"`
	Tokens []token.ID `json:"tokens"`
	Greedy []token.ID `json:"greedy"`
	Logits []float32  `json:"-"` // (Rows, Vocab)
}

func readReference(t *testing.T, base string) reference {
	t.Helper()
	var r reference
	b, err := os.ReadFile(base + ".deq.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(base + ".deq.f32")
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) != 4*r.Rows*r.Vocab {
		t.Fatalf("%s.deq.f32 has %d bytes, wanted %d", base, len(raw), 4*r.Rows*r.Vocab)
	}
	for i := 0; i < len(raw); i += 4 {
		r.Logits = append(r.Logits, math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
	}
	return r
}

// readLogits reads the first n float32 values of a file, if there is one.
func readLogits(t *testing.T, path string, n int) ([]float32, bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) < 4*n {
		t.Fatalf("%s has %d bytes, wanted %d", path, len(raw), 4*n)
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return x, true
}

// golden is a model with its reference's base name.
type golden struct{ name, model, base string }

// routed reports whether rounding may choose other experts.
func (g *golden) routed() bool {
	return strings.Contains(g.name, "moe") || strings.Contains(g.name, "mixtral") || strings.Contains(g.name, "-nano")
}

// logged has a model of o log into the returned buffer, from level on.
func logged(o *engine.Setup, level slog.Level) *bytes.Buffer {
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
	return &log
}

// manyTypes are goldens with weights of many types, whose kernels take long to compile.
var manyTypes = []string{"bits-moe-tiny", "iq-moe-tiny"}

// goldens lists the models in the test data that this build runs.
func goldens(t *testing.T) []golden {
	t.Helper()
	dir, demo := testdata.Dir(t), testdata.Demo(t)
	paths, err := filepath.Glob(filepath.Join(dir, "models", "*.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	var gs []golden
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), ".gguf")
		arch, _, _ := strings.Cut(name, "-")
		switch arch {
		case "llama", "llama3", "qwen2", "qwen3", "mixtral", "qwen3moe":
			gs = append(gs, golden{name, p, filepath.Join(dir, "logits", name)})
		}
	}
	ours, err := filepath.Glob(filepath.Join("testdata", "*.gguf")) // made by tools/golden
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ours {
		base := strings.TrimSuffix(p, ".gguf")
		if i := slices.Index(manyTypes, filepath.Base(base)); i < 0 || oneIn(len(manyTypes), i) {
			gs = append(gs, golden{filepath.Base(base), p, base})
		}
	}
	for _, name := range []string{"leat-demo-f16", "leat-demo-q8_0", "leat-demo-q4_k_m", "leat-demo-moe-q8_0", "leat-demo-moe-q4_k_m"} {
		gs = append(gs, golden{name, filepath.Join(demo, name+".gguf"), filepath.Join(demo, name)})
	}
	for _, name := range []string{"TinyStories-656K-bf16", "stories260K-f32"} {
		base := filepath.Join(dir, "vendor", "models", name)
		gs = append(gs, golden{name, base + ".gguf", base})
	}
	if testing.Short() { // one of each kind, for the race detector
		gs = slices.DeleteFunc(gs, func(g golden) bool {
			return g.name != "leat-demo-q4_k_m" && g.name != "leat-demo-moe-q8_0" && g.name != "llama3-tiny-q4_k_m" && g.name != "qwen2-tiny-q8_0"
		})
	}
	return gs
}

// setup is how a test loads a model with options o, and no hooks yet.
func setup(o engine.Options) engine.Setup { return engine.Setup{Options: o} }

// exact are the options of a model whose every step is computed in float32, row by row in the same order: what few rows
// in bytes are not.
func exact(o engine.Setup) engine.Setup {
	o.Tuning.Disable = append(slices.Clone(o.Tuning.Disable), "int8", "coopmat")
	return o
}

// load opens a model for a test, with validation when LEAT_VALIDATE=1 asks for it.
// Experts run apart, as they do on GPUs. Without a driver the test is skipped, unless LEAT_REQUIRE_DEVICE=1.
func load(t testing.TB, path string, o engine.Setup) *engine.Model {
	t.Helper()
	m, err := engine.LoadSetup(context.Background(), path, engine.WithApart(lend(o)))
	if errors.Is(err, engine.ErrNoDevice) && os.Getenv("LEAT_REQUIRE_DEVICE") != "1" {
		t.Skipf("no Vulkan device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := m.Stats().ValidationMessages
	t.Cleanup(func() {
		messages := m.Stats().ValidationMessages - before // those of loading are told at the end
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if messages > 0 {
			t.Errorf("%d messages of the validation layers, to this test or one that ran beside it", messages)
		}
	})
	return m
}

// devices are closed by TestMain.
var devices engine.Devices

// lend has a model run on the tests' device, under the validation layers when LEAT_VALIDATE=1 asks for it.
func lend(o engine.Setup) engine.Setup {
	o.Tuning.Validate, o.Tuning.Enable = os.Getenv("LEAT_VALIDATE") == "1", append(vktest.Enable(), o.Tuning.Enable...)
	return devices.Lend(o)
}

// loadKV is load, but for heads that the type of KV cache can't hold: then it says no.
func loadKV(t testing.TB, path string, o engine.Setup) (*engine.Model, bool) {
	t.Helper()
	m, err := engine.LoadSetup(context.Background(), path, lend(o))
	var size *shaders.HeadSizeError
	if errors.As(err, &size) {
		return nil, false
	}
	if err == nil {
		err = m.Close()
	}
	if err != nil && !errors.Is(err, engine.ErrNoDevice) {
		t.Fatal(err)
	}
	return load(t, path, o), true
}

// newSession opens a session, for the caller to close.
func newSession(t testing.TB, m *engine.Model) *engine.Session {
	t.Helper()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// logits runs ids through a fresh session and returns all rows, shape (T, V).
func logits(t testing.TB, m *engine.Model, ids []token.ID) []float32 {
	t.Helper()
	s := newSession(t, m)
	defer s.Close()
	var all []float32
	for row, err := range s.Logits(context.Background(), ids) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row...)
	}
	return all
}

// decoded are the logits after each of ids, each of which is given alone, as sampled tokens are.
func decoded(t testing.TB, m *engine.Model, ids []token.ID) []float32 {
	t.Helper()
	s := newSession(t, m)
	defer s.Close()
	var all []float32
	for i := range ids {
		row, err := s.Forward(context.Background(), ids[i:i+1])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row...)
	}
	return all
}

// relativeError is ‖a−b‖/‖b‖; NaN never passes a comparison with it.
func relativeError(a, b []float32) float64 {
	var diff, norm float64
	for i := range b {
		d := float64(a[i]) - float64(b[i])
		diff += d * d
		norm += float64(b[i]) * float64(b[i])
	}
	return math.Sqrt(diff / norm)
}

// alone skips a test in which one goroutine does all, under the race detector (-short), which would only be slow.
func alone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("nothing runs beside it")
	}
}
