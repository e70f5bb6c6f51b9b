package kernels

import (
	"fmt"

	"leat/shaders"
)

// RMSNorm normalises rows of X (Rows, Cols) into Dst, which may be X.
func RMSNorm(r *Recorder, a shaders.RMSNormArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "rms_norm", rowLanes: a.RowLanes()}}
	c.floats("X", a.X, a.XStride)
	c.address("W", a.W)
	c.floats("Dst", a.Dst, a.DstStride)
	c.stride("XStride", a.XStride, a.Cols)
	c.stride("DstStride", a.DstStride, a.Cols)
	if !(a.Eps >= 0) {
		c.that(false, "Eps", a.Eps, "0 or more")
	}
	n := float64(a.Rows) * float64(a.Cols)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Cols, a.XStride))
	t.read(f32s(a.W, 1, a.Cols, 0))
	t.write(f32s(a.Dst, a.Rows, a.Cols, a.DstStride))
	return record(r, &c, &a, a.Workgroups(c.rowLanes), &t, cost{8 * n, 4 * n})
}

// SoftMax turns rows of Scale · X (Rows, Cols) into probabilities in Dst, which may be X.
func SoftMax(r *Recorder, a shaders.SoftMaxArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "soft_max"}}
	c.address("X", a.X)
	c.address("Dst", a.Dst)
	n := float64(a.Rows) * float64(a.Cols)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Cols, a.Cols))
	t.write(f32s(a.Dst, a.Rows, a.Cols, a.Cols))
	return record(r, &c, &a, a.Workgroups(), &t, cost{16 * n, 8 * n})
}

// SwiGLU is Dst = silu(Gate) * Up.
func SwiGLU(r *Recorder, a shaders.GLUArgs) error { return recordGLU(r, "swiglu", a) }

// GeGLU is Dst = gelu(Gate) * Up.
func GeGLU(r *Recorder, a shaders.GLUArgs) error { return recordGLU(r, "geglu", a) }

func recordGLU(r *Recorder, op string, a shaders.GLUArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: op}}
	c.words("Gate", a.Gate)
	c.words("Up", a.Up)
	c.words("Dst", a.Dst)
	n := float64(a.Count)
	var t touch
	t.read(f32s(a.Gate, 1, a.Count, 0))
	t.read(f32s(a.Up, 1, a.Count, 0))
	t.write(f32s(a.Dst, 1, a.Count, 0))
	return record(r, &c, &a, a.Workgroups(), &t, cost{12 * n, 8 * n})
}

// Add is Dst[i] = A[i] + B[i % BCols]: a residual or, with BCols below Count, a bias. Dst may be A.
func Add(r *Recorder, a shaders.AddArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "add"}}
	c.words("A", a.A)
	c.words("B", a.B)
	c.words("Dst", a.Dst)
	if a.BCols == 0 || a.BCols > a.Count {
		c.that(false, "BCols", a.BCols, fmt.Sprintf("1 to Count, %d", a.Count))
	}
	n := float64(a.Count)
	var t touch
	t.read(f32s(a.A, 1, a.Count, 0))
	t.read(f32s(a.B, 1, a.BCols, 0))
	t.write(f32s(a.Dst, 1, a.Count, 0))
	return record(r, &c, &a, a.Workgroups(), &t, cost{12 * n, n})
}

// Checksum writes the xor of the words of each [shaders.ChecksumPiece] of Src, of Count times 16 bytes, to Dst uint32.
func Checksum(r *Recorder, a shaders.ChecksumArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "checksum"}}
	c.address("Src", a.Src)
	c.address("Dst", a.Dst)
	bytes := 16 * uint64(a.Count)
	var t touch
	t.read(span{a.Src, a.Src + bytes})
	t.write(f32s(a.Dst, 1, uint32(a.Workgroups()), 0))
	return record(r, &c, &a, a.Workgroups(), &t, cost{bytes: float64(bytes)})
}
