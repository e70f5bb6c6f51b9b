package ref

import (
	"math"
	"testing"

	"leat/gguf"
)

func TestUnary(t *testing.T) {
	x := []float32{-2, -0.5, 0, 0.5, 2}
	for name, c := range map[string]struct {
		act  func(float64) float64
		want []float32
	}{
		"gelu":     {GELU, []float32{-0.04540229, -0.15428599, 0, 0.34571401, 1.95459771}},
		"gelu_erf": {GELUErf, []float32{-0.04550026, -0.15426877, 0, 0.34573123, 1.95449974}},
		"relu2":    {ReLU2, []float32{0, 0, 0, 0.25, 4}},
		"xielu":    {func(x float64) float64 { return XIELU(x, 2, 3, 0.5, -1e-6) }, []float32{2.40600585, 0.06959198, 0, 0.75, 9}},
		"clamp":    {func(x float64) float64 { return Clamp(x, -1, 0.75) }, []float32{-1, -0.5, 0, 0.5, 0.75}},
	} {
		dst := make([]float32, len(x))
		Unary(dst, x, c.act)
		near(t, name, dst, c.want, 4e-6) // xielu at 0 is that of Eps
	}
}

func TestLayerNorm(t *testing.T) {
	dst := NewMat(2, 2)
	LayerNorm(dst, mat(2, 3, 5, 1e6, 1e6+2), nil, nil, 0)
	near(t, "without weights", dst.Data, []float32{-1, 1, -1, 1}, 0)
	LayerNorm(dst, mat(2, 3, 5, 3, 5), []float32{2, 3}, []float32{10, 20}, 0)
	near(t, "the same for all heads", dst.Data, []float32{8, 23, 8, 23}, 0)
	LayerNorm(dst, mat(2, 3, 5, 3, 5), []float32{2, 3, 4, 5}, []float32{10, 20, 30, 40}, 0)
	near(t, "each head's own", dst.Data, []float32{8, 23, 26, 45}, 0)
	LayerNorm(dst, mat(2, 3, 5, 3, 5), nil, nil, 3)
	near(t, "eps within the root", dst.Data, []float32{-0.5, 0.5, -0.5, 0.5}, 0)
	RMSNorm(dst, mat(2, 3, 4, 3, 4), []float32{1, 2, 3, 4}, 0)
	rms := float32(math.Sqrt(12.5))
	near(t, "RMS, each head's own", dst.Data, []float32{3 / rms, 8 / rms, 9 / rms, 16 / rms}, 1e-6)
}

func TestPointwise(t *testing.T) {
	dst := make([]float32, 6)
	Mul(dst, []float32{1, 2, 3, 4, 5, 6}, []float32{10, 100}, 3)
	near(t, "a factor a row", dst, []float32{10, 20, 30, 400, 500, 600}, 0)
	Mul(dst, []float32{1, 2, 3, 4, 5, 6}, []float32{1, 10, 100}, 1)
	near(t, "a weight of all rows", dst, []float32{1, 20, 300, 4, 50, 600}, 0)
	AddScaled(dst, []float32{1, 2, 3, 4, 5, 6}, []float32{1, 1, 1, 2, 2, 2}, 0.5)
	near(t, "a factor", dst, []float32{1.5, 2.5, 3.5, 5, 6, 7}, 0)
	x := mat(2, 1, 1, 2, 2)
	if err := AddRows(gguf.F32, x, f32Bytes([]float32{1, 2, 3, 4}), []uint32{1, 0}); err != nil {
		t.Fatal(err)
	}
	near(t, "rows", x.Data, []float32{4, 5, 3, 4}, 0)
	SoftCap(x.Data, []float32{8, 11, 6, 9}, 1, 10)
	near(t, "a cap", x.Data, []float32{6.6403677, 8.0049902, 5.3704957, 7.1629787}, 1e-6)
	y := NewMat(4, 2)
	Cpy(y, x)
	near(t, "each row twice", y.Data[2:6], []float32{x.Data[0], x.Data[1], x.Data[2], x.Data[3]}, 0)
}
