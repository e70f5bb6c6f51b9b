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
	"lfm2":          "the weights of two products in float32, where the file has them in BF16",
	"lfm2moe":       "the weights of two products in float32, where the file has them in BF16",
}

// toleranceTransformers is what float32 may differ from a reference in float64 whose norms and ropes are float32 as well.
const toleranceTransformers = 1e-5

// looser holds tolerances of models whose references are not exact: transformers runs gated delta nets partly in float32, so that float64 is as far from them
// as float32 is; falcon-mamba's file lacks the epsilon of its inner norms.
var looser = map[string]float64{"qwen35": 5e-5, "qwen3next": 5e-5, "qwen35moe": 5e-5, "falcon-mamba": 5e-5}

// contexts holds the contexts of sessions whose reference depends on them: LongRoPE's factors follow from how many tokens a session holds.
var contexts = map[string]int{"phi3-long": 32, "phi4-mini": 32, "phimoe": 32}

// TestTransformers holds models that Hugging Face's converter wrote, of all architectures that this build runs, against the logits of transformers, encoders
// against their last hidden states.
func TestTransformers(t *testing.T) {
	alone(t)
	paths, err := filepath.Glob(filepath.Join(testdata.Dir(t), "hf", "*.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("testdata/transformers/*.gguf")
	if err != nil || len(own) == 0 {
		t.Fatalf("found %d models of our own, error %v", len(own), err)
	}
	paths = append(paths, own...)
	for i, path := range paths {
		base := strings.TrimSuffix(path, ".gguf")
		if name := filepath.Base(base); (unlike[name] == "" || filepath.Dir(path) == "testdata/transformers") && inTurn(i) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				holdTransformers(t, base)
			})
		}
	}
}

// holdTransformers holds one model against its reference; it skips one of an architecture that is not supported.
func holdTransformers(t *testing.T, base string) {
	var ref struct {
		Tokens []token.ID
		Rows   int
		Vocab  int  // width of a row
		Hidden bool // rows are the last hidden states of an encoder
	}
	b, err := os.ReadFile(base + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &ref); err != nil {
		t.Fatal(err)
	}
	want, ok := readLogits(t, base+".f32", ref.Rows*ref.Vocab)
	if !ok {
		t.Skip("no reference")
	}
	o := exact(setup(engine.Options{KVType: "f32", ContextLength: cmp.Or(contexts[filepath.Base(base)], 64)}))
	m, err := engine.LoadSetup(t.Context(), base+".gguf", lend(o))
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err == nil {
		err = m.Close()
	}
	if err != nil && !errors.Is(err, engine.ErrNoDevice) {
		t.Fatal(err)
	}
	m = load(t, base+".gguf", o)
	tolerance := max(toleranceTransformers, looser[filepath.Base(base)])
	var got []float32
	if ref.Hidden {
		got = hiddenStates(t, m, ref.Tokens[:ref.Rows])
	} else {
		got = logits(t, m, ref.Tokens[:ref.Rows])
	}
	for i := range ref.Rows {
		row := func(x []float32) []float32 { return x[i*ref.Vocab:][:ref.Vocab] }
		if e := relativeError(row(got), row(want)); !(e <= tolerance) {
			t.Errorf("row %d: relative error %.2e, wanted at most %.0e", i, e, tolerance)
		}
	}
}
