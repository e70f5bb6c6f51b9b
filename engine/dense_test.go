package engine_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"leat/engine"
	"leat/gguf"
)

// withDense writes the model at path with two dense layers after its pooling, of which it returns the weights.
func withDense(t *testing.T, path string, width, inner int, change func(*gguf.Metadata)) (file string, second, third []float32) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var tensors []gguf.WriteTensor
	for i := range f.Tensors {
		x := &f.Tensors[i]
		raw, err := f.ReadTensor(x)
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, gguf.WriteTensor{Name: x.Name, Type: x.Type, Shape: x.Shape, Data: bytes.NewReader(raw)})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	dense := func(name string, rows, cols int) []float32 {
		w := make([]float32, rows*cols)
		for i := range w {
			w[i] = float32(rng.NormFloat64())
		}
		raw, err := binary.Append(nil, binary.LittleEndian, w)
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, gguf.WriteTensor{Name: name, Type: gguf.F32, Shape: []int64{int64(rows), int64(cols)}, Data: bytes.NewReader(raw)})
		return w
	}
	second, third = dense("dense_2.weight", inner, width), dense("dense_3.weight", width/2, inner)
	md := f.Metadata.Clone()
	change(md)
	file = filepath.Join(t.TempDir(), "dense.gguf")
	w, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := gguf.Write(w, md, tensors, gguf.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return file, second, third
}

// The dense layers of sentence-transformers multiply the pooled vector; tokens' own vectors are those before them.
func TestDense(t *testing.T) {
	path, ids, _ := transformersModel(t, "embeddinggemma")
	plain := load(t, path, setup(engine.Options{ContextLength: len(ids)}))
	width, inner := plain.Info().EmbeddingLength, 24
	file, second, third := withDense(t, path, width, inner, func(md *gguf.Metadata) {
		for key, n := range map[string]int{"dense_2_feat_in": width, "dense_2_feat_out": inner, "dense_3_feat_in": inner, "dense_3_feat_out": width / 2} {
			if err := md.Set("gemma-embedding."+key, uint32(n)); err != nil {
				t.Fatal(err)
			}
		}
	})
	m := load(t, file, setup(engine.Options{ContextLength: len(ids)}))
	mean := engine.EmbedOptions{Pooling: engine.PoolingMean, Unscaled: true}
	pooled := embed(t, plain, mean, ids)[0]
	want := product(third, product(second, pooled, inner), width/2)
	if got := embed(t, m, mean, ids)[0]; len(got) != len(want) || !(relativeError(got, want) < 1e-6) {
		t.Errorf("found %d numbers, relative error %.2e; wanted %d", len(got), relativeError(got, want), len(want))
	}
	mean.Unscaled = false
	length := 0.0
	for _, x := range embed(t, m, mean, ids)[0] {
		length += float64(x) * float64(x)
	}
	if math.Abs(length-1) > 1e-5 {
		t.Errorf("length² %g, wanted 1", length)
	}
	if !slices.Equal(hiddenStates(t, m, ids), hiddenStates(t, plain, ids)) {
		t.Error("vectors of tokens are not those before the dense layers")
	}
	wrong, _, _ := withDense(t, path, width, inner, func(md *gguf.Metadata) {
		if err := md.Set("gemma-embedding.dense_2_feat_out", uint32(7)); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := engine.LoadSetup(t.Context(), wrong, lend(setup(engine.Options{}))); err == nil {
		t.Error("a key that contradicts its tensor: loads")
	}
}

// product is W·x, W of rows rows.
func product(w, x []float32, rows int) []float32 {
	out := make([]float32, rows)
	for r := range out {
		for c, v := range x {
			out[r] += w[r*len(x)+c] * v
		}
	}
	return out
}
