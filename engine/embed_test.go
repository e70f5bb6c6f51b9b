package engine_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/gguf"
	"leat/gguf/quant"
	"leat/tools/testdata"
)

// encoders are the models of testdata that are encoders.
var encoders = []string{"bert", "xlm-roberta", "modernbert", "embeddinggemma"}

// toleranceEncoder is what the kernels that devices have for speed may differ from a reference in float64: the least bar of any model. Products in bytes of weights that
// were bytes before are not among them: weights here are BF16.
const toleranceEncoder = 2e-3

// transformersModel is a model of testdata, the tokens of its reference, and the rows of this: logits, or an encoder's hidden states.
func transformersModel(t *testing.T, name string) (path string, ids []token.ID, rows []float32) {
	t.Helper()
	a := readAuthored(t, filepath.Join(testdata.Dir(t), "hf", name))
	rows, why := a.reference(t)
	if why != "" {
		t.Fatal(why)
	}
	return a.base + ".gguf", a.Tokens[:a.Rows], rows
}

// hiddenStates are the last hidden states of a text, (T, D).
func hiddenStates(t testing.TB, m *engine.Model, ids []token.ID) []float32 {
	t.Helper()
	return embed(t, m, engine.EmbedOptions{Pooling: engine.PoolingNone, Unscaled: true}, ids)[0]
}

func embed(t testing.TB, m *engine.Model, o engine.EmbedOptions, texts ...[]token.ID) [][]float32 {
	t.Helper()
	got, err := m.Embed(t.Context(), texts, o)
	if err != nil {
		t.Error(err)
		return make([][]float32, len(texts))
	}
	return got
}

// cuts are texts of many lengths: beginnings of ids, and the same tokens turned round.
func cuts(ids []token.ID) (texts [][]token.ID) {
	for _, n := range []int{5, 1, 33, 17, 48, 32, 9} {
		text := append([]token.ID(nil), ids[:n]...)
		for i := range n / 2 * (len(texts) % 2) {
			text[i], text[n-1-i] = text[n-1-i], text[i]
		}
		texts = append(texts, text)
	}
	return texts
}

// Encoders have the same bits whichever texts share a step and wherever weights live, and are near to the authors' numbers with the fastest kernels.
func TestEncoders(t *testing.T) {
	alone(t)
	for i, name := range encoders {
		if !oneIn(len(encoders), i) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			path, ids, want := transformersModel(t, name)
			o := setup(engine.Options{ContextLength: len(ids)})
			whole := load(t, path, o)
			width := whole.Info().EmbeddingLength
			got := hiddenStates(t, whole, ids)
			for i := range ids {
				if e := relativeError(got[i*width:][:width], want[i*width:][:width]); !(e <= toleranceEncoder) {
					t.Errorf("row %d: relative error %.2e", i, e)
				}
			}
			texts := cuts(ids)
			var single [][]float32
			for _, text := range texts {
				single = append(single, hiddenStates(t, whole, text))
			}
			steps := whole.Stats().Steps
			together(t, "together", whole, texts, single)
			if n := int(whole.Stats().Steps - steps); n >= len(texts) {
				t.Errorf("%d texts took %d steps", len(texts), n)
			}
			manyCallers(t, whole, texts, single)
			least, all := leastBudget(t, path, o), engine.DetailsOf(whole).Plan.DeviceBytes
			for i := range 3 {
				o := o
				o.DeviceBytes, o.HostBytes = least+int64(i)*(all-least)/2, 1
				o.Sessions = 1 + i%2
				if o.Sessions > 1 {
					o.DeviceBytes += 1 << 20
				}
				m := load(t, path, o)
				if streams := len(engine.DetailsOf(m).Plan.Ring) > 0; i == 0 && !streams {
					t.Error("the least budget streams nothing")
				}
				together(t, fmt.Sprintf("budget %d of 3", i+1), m, texts, single)
			}
		})
	}
}

// manyCallers embeds texts in several goroutines at once.
func manyCallers(t *testing.T, m *engine.Model, texts [][]token.ID, want [][]float32) {
	t.Helper()
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() { together(t, "beside other calls", m, texts, want) })
	}
	calls.Wait()
}

// together wants the hidden states that texts have one by one from a call with all of them.
func together(t *testing.T, what string, m *engine.Model, texts [][]token.ID, want [][]float32) {
	t.Helper()
	got := embed(t, m, engine.EmbedOptions{Pooling: engine.PoolingNone, Unscaled: true}, texts...)
	for i := range texts {
		sameBits(t, fmt.Sprintf("%s, text %d", what, i), got[i], want[i])
	}
}

// Each way to pool gives what a plain computation makes of the hidden states.
func TestPooling(t *testing.T) {
	alone(t)
	for i, name := range []string{"bert", "llama"} {
		if !oneIn(2, i) {
			continue
		}
		path, ids, _ := transformersModel(t, name)
		m := load(t, path, setup(engine.Options{ContextLength: 64}))
		texts, width := [][]token.ID{ids[:5], ids[:1], ids[3:40]}, m.Info().EmbeddingLength
		var hidden [][]float32
		for _, text := range texts {
			hidden = append(hidden, hiddenStates(t, m, text))
		}
		for _, pooling := range []engine.Pooling{engine.PoolingMean, engine.PoolingFirst, engine.PoolingLast, engine.PoolingNone} {
			for _, unscaled := range []bool{true, false} {
				got := embed(t, m, engine.EmbedOptions{Pooling: pooling, Unscaled: unscaled}, texts...)
				for i := range texts {
					want := pooledPlainly(hidden[i], width, pooling, !unscaled)
					if e := relativeError(got[i], want); len(got[i]) != len(want) || !(e <= 1e-6) {
						t.Errorf("%s, %s, unscaled %v, text %d: %d numbers, wanted %d; relative error %.2e", name, pooling, unscaled, i, len(got[i]), len(want), e)
					}
				}
			}
		}
	}
}

func pooledPlainly(hidden []float32, width int, pooling engine.Pooling, normalised bool) []float32 {
	rows := [][]float32{}
	for i := 0; i < len(hidden); i += width {
		rows = append(rows, hidden[i:i+width])
	}
	switch pooling {
	case engine.PoolingFirst:
		rows = rows[:1]
	case engine.PoolingLast:
		rows = rows[len(rows)-1:]
	case engine.PoolingMean:
		mean := make([]float32, width)
		for c := range mean {
			var sum float64
			for _, row := range rows {
				sum += float64(row[c])
			}
			mean[c] = float32(sum / float64(len(rows)))
		}
		rows = [][]float32{mean}
	}
	var out []float32
	for _, row := range rows {
		length := 1.0
		if normalised {
			length = 0
			for _, v := range row {
				length += float64(v) * float64(v)
			}
			length = math.Sqrt(length)
		}
		for _, v := range row {
			out = append(out, float32(float64(v)/length))
		}
	}
	return out
}

// The hidden states of a model that generates are what its output matrix makes logits of: with a norm that has weights, one that has none, and states.
func TestHiddenStatesMakeLogits(t *testing.T) {
	alone(t)
	for i, name := range []string{"llama", "olmo", "nemotron-h"} {
		if !oneIn(3, i) {
			continue
		}
		path, ids, want := transformersModel(t, name)
		for _, chunk := range []int{0, 5} {
			o := exact(setup(engine.Options{KVType: "f32", ContextLength: 64}))
			o.Tuning.Chunk = chunk
			m := load(t, path, o)
			width, vocab := m.Info().EmbeddingLength, m.Info().VocabSize
			hidden, head := hiddenStates(t, m, ids), outputMatrix(t, path, vocab, width)
			for i := range ids {
				row := make([]float32, vocab)
				for v := range row {
					var sum float64
					for c := range width {
						sum += float64(head[v*width+c]) * float64(hidden[i*width+c])
					}
					row[v] = float32(sum)
				}
				if e := relativeError(row, want[i*vocab:][:vocab]); !(e <= toleranceTransformers) {
					t.Fatalf("%s, chunk %d, row %d: relative error %.2e", name, chunk, i, e)
				}
			}
		}
	}
}

// outputMatrix is a model's output.weight in float32, (V, D).
func outputMatrix(t *testing.T, path string, vocab, width int) []float32 {
	t.Helper()
	m, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tensor, ok := m.Tensor("output.weight")
	if !ok {
		t.Fatal("no output matrix")
	}
	raw, err := m.ReadTensor(tensor)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, vocab*width)
	if err := quant.Decode(tensor.Type, x, raw); err != nil {
		t.Fatal(err)
	}
	return x
}

// What can't be embedded is refused, with numbers where a text is too long.
func TestEmbedRefusals(t *testing.T) {
	path, ids, _ := transformersModel(t, "bert")
	o := setup(engine.Options{ContextLength: 40})
	o.Tuning.Chunk = 32
	m := load(t, path, o)
	long := append(ids, append(ids, ids...)...)
	for _, c := range []struct {
		texts   [][]token.ID
		pooling engine.Pooling
		is      error
		want    string
		hint    string
	}{
		{[][]token.ID{ids[:3], ids[:33]}, "", engine.ErrContextFull, "text 2 of 2 has 33 tokens, wanted 1 to 32", "--ctx 33"},
		{[][]token.ID{long}, "", engine.ErrContextFull, "has 144 tokens", "trained for at most 128"},
		{[][]token.ID{ids[:3], {}}, "", engine.ErrNoTokens, "text 2 of 2 has 0 tokens", ""},
		{[][]token.ID{{7, 512}}, "", nil, "text 1 of 1: token 1 of 2: found id 512", ""},
		{[][]token.ID{ids[:3]}, "rank", errors.ErrUnsupported, "classifier", "--pooling none"},
		{[][]token.ID{ids[:3]}, "max", errors.ErrUnsupported, `found "max"`, "--pooling mean"},
	} {
		_, err := m.Embed(t.Context(), c.texts, engine.EmbedOptions{Pooling: c.pooling})
		hint := ""
		if h := (interface{ Hint() string })(nil); errors.As(err, &h) {
			hint = h.Hint()
		}
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || !strings.Contains(hint, c.hint) {
			t.Errorf("error %v, hint %q; wanted %q and %q", err, hint, c.want, c.hint)
		}
	}
	var encoder *engine.EncoderError
	if _, err := m.NewSession(); !errors.As(err, &encoder) || encoder.Architecture != "bert" || !strings.Contains(encoder.Hint(), "leat embed") {
		t.Errorf("a session: error %v", err)
	}
	if got, err := m.Embed(t.Context(), nil, engine.EmbedOptions{}); err != nil || len(got) != 0 {
		t.Errorf("no texts: %v, error %v", got, err)
	}
	path, ids, _ = transformersModel(t, "llama")
	var pooling *engine.PoolingError
	other := load(t, path, setup(engine.Options{ContextLength: 64}))
	if _, err := other.Embed(t.Context(), [][]token.ID{ids}, engine.EmbedOptions{}); !errors.As(err, &pooling) || pooling.Found != "" {
		t.Errorf("a model whose file says no pooling: error %v", err)
	}
	s := newSession(t, other)
	var budget *engine.BudgetError
	if _, err := other.Embed(t.Context(), [][]token.ID{ids}, engine.EmbedOptions{Pooling: engine.PoolingLast}); !errors.As(err, &budget) {
		t.Errorf("beside a session that has all of the cache: error %v", err)
	}
	s.Close()
	embed(t, other, engine.EmbedOptions{Pooling: engine.PoolingLast}, ids)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Embed(t.Context(), [][]token.ID{ids}, engine.EmbedOptions{Pooling: engine.PoolingLast}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after Close: error %v", err)
	}
}
