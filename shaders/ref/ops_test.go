package ref

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"leat/gguf"
	"leat/gguf/quant"
)

func near(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tol) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func mat(cols int, data ...float32) Mat {
	return Mat{Data: data, Rows: len(data) / cols, Cols: cols, Stride: cols}
}

func randomMat(rng *rand.Rand, rows, cols int) Mat {
	m := NewMat(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(rng.NormFloat64())
	}
	return m
}

func f32Bytes(v []float32) []byte {
	b := make([]byte, 4*len(v))
	for i, f := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(f))
	}
	return b
}

func TestMatStride(t *testing.T) {
	m := Mat{Data: []float32{1, 2, -1, 3, 4, -1}, Rows: 2, Cols: 2, Stride: 3}
	near(t, "row 1", m.Row(1), []float32{3, 4}, 0)
}

func TestGetRows(t *testing.T) {
	table := f32Bytes([]float32{1, 2, 3, 4, 5, 6}) // (3, 2)
	dst := NewMat(3, 2)
	if err := GetRows(gguf.F32, dst, table, []uint32{2, 0, 2}); err != nil {
		t.Fatal(err)
	}
	near(t, "dst", dst.Data, []float32{5, 6, 1, 2, 5, 6}, 0)
}

func TestRMSNorm(t *testing.T) {
	dst := NewMat(2, 2)
	RMSNorm(dst, mat(2, 3, 4, 0, 0), []float32{1, 10}, 0)
	rms := float32(math.Sqrt(12.5))
	near(t, "row 0", dst.Row(0), []float32{3 / rms, 40 / rms}, 1e-6)
	RMSNorm(dst, mat(2, 3, 4, 0, 0), []float32{1, 1}, 1e-6)
	near(t, "zero row with eps", dst.Row(1), []float32{0, 0}, 0)
	RMSNorm(dst, mat(2, 3, 4, 1, 1), []float32{1, 1}, 3)
	near(t, "eps inside the root", dst.Row(1), []float32{0.5, 0.5}, 1e-7)
}

func TestMulMat(t *testing.T) {
	w := f32Bytes([]float32{1, 2, 3, 4, 5, 6}) // (3, 2)
	dst := Mat{Data: []float32{9, 9, 9, 9, 9, 9, 9, 9}, Rows: 2, Cols: 3, Stride: 4}
	if err := MulMat(gguf.F32, dst, w, mat(2, 1, 1, 10, -1)); err != nil {
		t.Fatal(err)
	}
	near(t, "dst", dst.Data, []float32{3, 7, 11, 9, 8, 26, 44, 9}, 0)
}

// A typed weight times the unit vectors gives back its own decoded columns.
func TestMulMatTyped(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range quant.Types() {
		const m, k = 3, 256
		rowBytes, err := typ.RowBytes(k)
		if err != nil {
			t.Fatal(err)
		}
		w := make([]byte, m*rowBytes)
		quant.RandomBlocks(typ, w, rng, 1)
		want := make([]float32, m*k)
		if err := quant.Decode(typ, want, w); err != nil {
			t.Fatal(err)
		}
		x, dst := NewMat(1, k), NewMat(1, m)
		for _, col := range []int{0, 31, 100, 255} {
			clear(x.Data)
			x.Data[col] = 1
			if err := MulMat(typ, dst, w, x); err != nil {
				t.Fatal(err)
			}
			near(t, typ.String(), dst.Data, []float32{want[col], want[k+col], want[2*k+col]}, 0)
		}
	}
	if err := MulMat(gguf.Q4_K, NewMat(1, 1), make([]byte, 144), NewMat(1, 100)); err == nil {
		t.Error("a row of 100 values of Q4_K went through")
	}
}

func TestSoftMax(t *testing.T) {
	dst := NewMat(2, 3)
	SoftMax(dst, mat(3, 0, float32(math.Log(2)), float32(math.Log(5)), 1000, 1000, -1000), 1)
	near(t, "row 0", dst.Row(0), []float32{0.125, 0.25, 0.625}, 1e-7)
	near(t, "large values", dst.Row(1), []float32{0.5, 0.5, 0}, 1e-7)
	x := randomMat(rand.New(rand.NewPCG(3, 4)), 5, 77)
	out := NewMat(5, 77)
	SoftMax(out, x, 2.5)
	for r := range out.Rows {
		sum := 0.0
		for _, v := range out.Row(r) {
			sum += float64(v)
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Errorf("row %d sums to %v", r, sum)
		}
	}
}

func TestGLU(t *testing.T) {
	dst := make([]float32, 3)
	SwiGLU(dst, []float32{0, 1, -20}, []float32{7, 2, 1})
	near(t, "swiglu", dst, []float32{0, 2 * 0.7310586, -20 * 2.0611537e-9}, 1e-6)
	GeGLU(dst, []float32{0, 1, 5}, []float32{7, 2, 1})
	near(t, "geglu", dst, []float32{0, 2 * 0.8411920, 4.9999998}, 1e-6)
}

func TestAdd(t *testing.T) {
	dst := make([]float32, 4)
	Add(dst, []float32{1, 2, 3, 4}, []float32{10, 20})
	near(t, "bias", dst, []float32{11, 22, 13, 24}, 0)
	Add(dst, dst, []float32{1, 1, 1, 1})
	near(t, "residual in place", dst, []float32{12, 23, 14, 25}, 0)
}

func TestArgmax(t *testing.T) {
	dst := make([]uint32, 4)
	inf, nan := float32(math.Inf(-1)), float32(math.NaN())
	Argmax(dst, mat(4, 1, 3, 3, 2, -5, -5, -5, -5, 4, 5, inf, nan, 7, nan, 9, inf))
	if want := []uint32{1, 0, ^uint32(2), ^uint32(1)}; !slices.Equal(dst, want) {
		t.Errorf("argmax = %v, want %v", dst, want)
	}
}
