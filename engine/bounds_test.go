package engine_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"leat/engine"
	"leat/engine/sample"
	"leat/internal/kernels"
	"leat/tools/testdata"
	"leat/vk"
	"leat/vk/vktest"
)

// TestGoldensFew holds steps of few rows, which are computed in bytes, against the reference: they may differ from it half as
// much again as the other engine does whose inputs are bytes too.
func TestGoldensFew(t *testing.T) {
	alone(t)
	testBounds(t, setup(engine.Options{KVType: "f32", ContextLength: 128, Tuning: engine.Tuning{Chunk: 8}}), true)
}

// TestGoldensHalves holds long steps by cooperative matrices, whose inputs are halves, to the same; and to far less without bytes, which else the
// last layer's products have: all rows' logits are wanted.
func TestGoldensHalves(t *testing.T) {
	p, f := chosen(t, vktest.Enable())
	if !kernels.PromptsUseMatrices(p, f) {
		t.Skipf("%s has no cooperative matrices, or is a CPU and LEAT_ENABLE=coopmat is not set", p.Name)
	}
	o := setup(engine.Options{KVType: "f16", ContextLength: 128})
	t.Run("default", func(t *testing.T) { testBounds(t, o, kernels.HasFewRowKernels(p, f)) })
	o.Tuning.Disable = append(slices.Clone(o.Tuning.Disable), "int8")
	t.Run("without bytes", func(t *testing.T) { testBounds(t, o, false) })
}

// chosen is the device that models run on, and the features that they use.
func chosen(t *testing.T, enable []string) (*vk.PhysicalDevice, vk.Features) {
	t.Helper()
	p, err := vktest.Instance(t).Pick("")
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Choose(nil, enable)
	if err != nil {
		t.Fatal(err)
	}
	return p, f
}

// bound is what a model's logits of the prompt differ by from the reference, and may.
type bound struct {
	nmse, limit float64
	other       float64 // the other engine's NMSE; 0: not at hand
	same, rows  int     // most likely tokens that are the reference's
}

// What is allowed of bytes where the other engine's own logits are not at hand, of models that were trained: three times what
// is measured. And of halves at most: ten times what is measured, far less than what bytes cost the other engine.
const (
	nmseBytes  = 1e-3
	nmseHalves = 2e-5
	// An expert is chosen in place of another where their scores are near; then a row differs by far more than rounding.
	// Measured: up to 2.4e-2 on random weights, whose scores often are.
	nmseRouted = 5e-2
)

// testBounds runs the prompts of the goldens that are in turn; with -v it ends with a table. See [measureBound].
func testBounds(t *testing.T, o engine.Setup, bytes bool) {
	t.Helper()
	gs := goldens(t)
	rows := make([]string, len(gs))
	t.Cleanup(func() {
		var table strings.Builder
		w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
		fmt.Fprint(w, "model\tNMSE\tllama.cpp CPU\tratio\tallowed\tsame top-1\n", strings.Join(rows, ""))
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
		t.Logf("\n%s", &table)
	})
	for i, g := range gs {
		if !inTurn(i) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			b := measureBound(t, g, o, bytes)
			if !(b.nmse <= b.limit) {
				t.Errorf("NMSE %.2e, wanted at most %.2e", b.nmse, b.limit)
			}
			other, ratio := "-", "-"
			if b.other > 0 {
				other, ratio = fmt.Sprintf("%.1e", b.other), fmt.Sprintf("%.2f", b.nmse/b.other)
			}
			rows[i] = fmt.Sprintf("%s\t%.1e\t%s\t%s\t%.1e\t%d/%d\n", g.name, b.nmse, other, ratio, b.limit, b.same, b.rows)
		})
	}
}

// measureBound decodes the prompt where o's steps are short, and else reads it as one; with bytes the limit is that of kernels in bytes.
func measureBound(t *testing.T, g golden, o engine.Setup, bytes bool) bound {
	ref := readReference(t, g.base)
	b := bound{rows: len(ref.Tokens)}
	n := b.rows * ref.Vocab
	read := logits
	if o.Tuning.Chunk > 0 {
		read = decoded
	}
	got := read(t, load(t, g.model, o), ref.Tokens)
	b.nmse = math.Pow(relativeError(got, ref.Logits[:n]), 2)
	b.limit = nmseBytes
	if other, ok := readLogits(t, g.base+".f32", n); ok {
		b.other = math.Pow(relativeError(other, ref.Logits[:n]), 2)
		b.limit = 1.5 * b.other
	}
	if g.routed() {
		b.limit = nmseRouted
	} else if !bytes {
		b.limit = min(b.limit, nmseHalves)
	}
	for i := range b.rows {
		if sample.Argmax(got[i*ref.Vocab:][:ref.Vocab]) == sample.Argmax(ref.Logits[i*ref.Vocab:][:ref.Vocab]) {
			b.same++
		}
	}
	return b
}

// TestBytesOfText holds steps in bytes to float32 on a trained model and a text: as good a guess of the next token, and
// almost always the same one.
func TestBytesOfText(t *testing.T) {
	alone(t)
	const windows, window = 4, 128
	g := goldenNamed(t, "leat-demo-q4_k_m")
	text, err := os.ReadFile(filepath.Join(testdata.Dir(t), "vendor", "corpora", "tinystories-sample.txt"))
	if err != nil {
		t.Fatal(err)
	}
	o := setup(engine.Options{KVType: "f32", ContextLength: window, Tuning: engine.Tuning{Chunk: 8}})
	few, whole := load(t, g.model, o), load(t, g.model, exact(o))
	ids := few.Encode(string(text[:8<<10]), false)
	if len(ids) < windows*window {
		t.Fatalf("the text has %d tokens, want %d", len(ids), windows*window)
	}
	var nats [2]float64
	same, rows := 0, 0
	for w := range windows {
		ids := ids[w*window:][:window]
		a, b := logits(t, few, ids), logits(t, whole, ids)
		v := len(a) / window
		for i := range window - 1 {
			a, b := a[i*v:][:v], b[i*v:][:v]
			for j, l := range [][]float32{a, b} {
				of, _ := sample.Logprobs(l, int32(ids[i+1]), 0)
				nats[j] -= of
			}
			if rows++; sample.Argmax(a) == sample.Argmax(b) {
				same++
			}
		}
	}
	n := float64(rows)
	change := math.Exp((nats[0]-nats[1])/n) - 1
	t.Logf("perplexity %.3f in bytes, %.3f in float32 (%+.2f %%); %d of %d most likely tokens equal (%.1f %%)",
		math.Exp(nats[0]/n), math.Exp(nats[1]/n), 100*change, same, rows, 100*float64(same)/n)
	if p, f := chosen(t, nil); kernels.HasFewRowKernels(p, f) == (nats[0] == nats[1]) {
		t.Errorf("steps in bytes: %v, yet %.9f nats with them, %.9f without", kernels.HasFewRowKernels(p, f), nats[0], nats[1])
	}
	if math.Abs(change) > 0.005 {
		t.Errorf("perplexity changes by %.2f %%, wanted at most 0.5 %%", 100*change)
	}
	if float64(same) < 0.975*n {
		t.Errorf("%d of %d most likely tokens are equal, wanted 97.5 %%", same, rows)
	}
}

func goldenNamed(t *testing.T, name string) golden {
	t.Helper()
	gs := goldens(t)
	i := slices.IndexFunc(gs, func(g golden) bool { return g.name == name })
	if i < 0 {
		t.Fatalf("no golden %q", name)
	}
	return gs[i]
}
