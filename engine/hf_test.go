package engine_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/testdata"
)

// unlike names models whose reference was computed with something other than what their file says, and what that is.
var unlike = map[string]string{
	"afmoe":      "embeddings without a factor, and every third layer without a window, where no key says so",
	"llama4":     "chunks of 16 positions, where no key says so",
	"minimax-m2": "rope of all values of a head, where the file says half of them",

	"granitehybrid": "rope, where the file says that there is none",
}

// toleranceTransformers is what float32 may differ from a reference in float64 whose norms and ropes are float32 as well.
const toleranceTransformers = 1e-5

// looser holds tolerances of models whose references are not exact: transformers runs gated delta nets partly in float32, so that float64 is as far from them
// as float32 is; falcon-mamba's file lacks the epsilon of its inner norms; those of the test data's LFM2 had the weights of two products in float32, where the files have them in BF16.
var looser = map[string]float64{"qwen35": 5e-5, "qwen3next": 5e-5, "qwen35moe": 5e-5, "falcon-mamba": 5e-5, "lfm2": 2e-2, "lfm2moe": 2e-2}

// contexts holds the contexts of sessions whose reference depends on them: LongRoPE's factors follow from how many tokens a session holds.
var contexts = map[string]int{"phi3-long": 32, "phi4-mini": 32, "phimoe": 32}

// authored is a small model that Hugging Face's converter wrote, with what its authors' code computes of some tokens.
type authored struct {
	name, base string
	Tokens     []token.ID
	Rows       int
	Vocab      int  // width of a row
	Hidden     bool // rows are the last hidden states of an encoder
}

// authoredModels lists those of the test data, then ours.
func authoredModels(t *testing.T) (models []authored) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testdata.Dir(t), "hf", "*.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("testdata/transformers/*.gguf")
	if err != nil || len(own) == 0 {
		t.Fatalf("found %d models of our own, error %v", len(own), err)
	}
	for _, path := range append(paths, own...) {
		models = append(models, readAuthored(t, strings.TrimSuffix(path, ".gguf")))
	}
	return models
}

// readAuthored reads what BASE.json says of the model BASE.gguf.
func readAuthored(t *testing.T, base string) authored {
	t.Helper()
	a := authored{name: filepath.Base(base), base: base}
	b, err := os.ReadFile(base + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// reference returns what the authors' code computes, shape (Rows, Vocab), or says why there is nothing to compare with.
func (a *authored) reference(t *testing.T) (want []float32, why string) {
	t.Helper()
	if why := unlike[a.name]; why != "" && !a.ours() {
		return nil, why
	}
	want, ok := readLogits(t, a.base+".f32", a.Rows*a.Vocab)
	if !ok {
		return nil, "no reference"
	}
	return want, ""
}

// options are those of a session that computes what the reference says, with a KV cache of a type.
func (a *authored) options(kv string) engine.Setup {
	return exact(setup(engine.Options{KVType: kv, ContextLength: cmp.Or(contexts[a.name], 64)}))
}

// ours reports whether the reference is one that we made, for files that say what was computed.
func (a *authored) ours() bool { return filepath.Dir(a.base) == "testdata/transformers" }

func (a *authored) looser() float64 {
	if a.name == "lfm2" && a.ours() {
		return 0
	}
	return looser[a.name]
}

// TestTransformers holds models of all architectures that this build runs against the logits of transformers, encoders against their last hidden states. It tries
// all of them in every run, but for those under the validation layers.
func TestTransformers(t *testing.T) {
	alone(t)
	for i, a := range authoredModels(t) {
		if want, why := a.reference(t); why == "" && (inTurn(i) || os.Getenv("LEAT_VALIDATE") != "1") {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				holdTransformers(t, a, want)
			})
		}
	}
}

// holdTransformers holds one model against its reference; it skips one of an architecture that is not supported.
func holdTransformers(t *testing.T, a authored, want []float32) {
	o := a.options("f32")
	m, err := engine.LoadSetup(t.Context(), a.base+".gguf", lend(o))
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err == nil {
		err = m.Close()
	}
	if err != nil && !errors.Is(err, engine.ErrNoDevice) {
		t.Fatal(err)
	}
	m = load(t, a.base+".gguf", o)
	var got []float32
	if a.Hidden {
		got = hiddenStates(t, m, a.Tokens[:a.Rows])
	} else {
		got = logits(t, m, a.Tokens[:a.Rows])
	}
	worst := a.compare(t, got, want, max(toleranceTransformers, a.looser()))
	keepResult(t, m, a.base+".gguf", a.name, "transformers", "f32", worst)
}

// compare holds each row against the reference's, and returns the largest relative error.
func (a *authored) compare(t *testing.T, got, want []float32, tolerance float64) (worst float64) {
	t.Helper()
	for i := range a.Rows {
		row := func(x []float32) []float32 { return x[i*a.Vocab:][:a.Vocab] }
		e := relativeError(row(got), row(want))
		if !(e <= tolerance) {
			t.Errorf("row %d: relative error %.2e, wanted at most %.0e", i, e, tolerance)
		}
		worst = max(worst, e)
	}
	t.Logf("worst row: relative error %.2e", worst)
	return worst
}
