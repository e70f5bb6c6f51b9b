package kernels

import (
	"cmp"
	"fmt"
	"math"

	"leat/gguf"
	"leat/shaders"
)

// Scale is Dst = Factor * X. Dst may be X.
func Scale(r *Recorder, a shaders.ScaleArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "scale"}}
	t := checkEach(&c, a.X, a.Dst, a.Count)
	c.finite("Factor", a.Factor)
	return record(r, &c, &a, a.Workgroups(), &t, eachCost(a.Count, 8, 1))
}

// SoftCap is Dst = Cap * tanh(Factor * X / Cap). Dst may be X.
func SoftCap(r *Recorder, a shaders.SoftCapArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "soft_cap"}}
	t := checkEach(&c, a.X, a.Dst, a.Count)
	c.finite("Factor", a.Factor)
	if !(a.Cap > 0) {
		c.require(false, "Cap", a.Cap, "more than 0")
	}
	return record(r, &c, &a, a.Workgroups(), &t, eachCost(a.Count, 8, 30))
}

// Add is Dst[i] = A[i] + B[i % BCols]: a residual or, with BCols below Count, a bias. Dst may be A.
func Add(r *Recorder, a shaders.AddArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "add"}}
	t := checkEachPair(&c, a.A, a.B, a.Dst, a.Count, a.BCols)
	if a.BCols == 0 || a.BCols > a.Count {
		c.require(false, "BCols", a.BCols, fmt.Sprintf("1 to Count, %d", a.Count))
	}
	return record(r, &c, &a, a.Workgroups(), &t, eachCost(a.Count, 12, 1))
}

// AddScaled is Dst = A + Factor * B. Dst may be A or B.
func AddScaled(r *Recorder, a shaders.AddScaledArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "add_scaled"}}
	t := checkEachPair(&c, a.A, a.B, a.Dst, a.Count, a.Count)
	c.finite("Factor", a.Factor)
	return record(r, &c, &a, a.Workgroups(), &t, eachCost(a.Count, 12, 2))
}

// Mul is Dst[i] = A[i] * B[i / Repeat % BCount]. Dst may be A.
func Mul(r *Recorder, a shaders.MulArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "mul"}}
	t := checkEachPair(&c, a.A, a.B, a.Dst, a.Count, a.BCount)
	c.positive("Repeat", a.Repeat)
	if a.BCount == 0 || a.BCount > a.Count {
		c.require(false, "BCount", a.BCount, fmt.Sprintf("1 to Count, %d", a.Count))
	}
	return record(r, &c, &a, a.Workgroups(), &t, eachCost(a.Count, 12, 1))
}

// AddRows adds the rows a.IDs of a table of type t, which is of floats, to Dst (Rows, Cols).
func AddRows(r *Recorder, t gguf.Type, a shaders.AddRowsArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "add_rows", typed: true, typ: t}}
	c.address("Table", a.Table)
	c.words("IDs", a.IDs)
	c.words("Dst", a.Dst)
	var touched touch
	touched.read(f32s(a.IDs, 1, a.Rows, 0))
	touched.read(span{a.Table, 1 << 63}) // the device alone knows which rows
	touched.write(f32s(a.Dst, a.Rows, a.Cols, a.Cols))
	n := float64(a.Rows) * float64(a.Cols)
	return record(r, &c, &a, a.Workgroups(), &touched, cost{12 * n, n})
}

// Cpy copies rows of X to those of Dst, each of them Repeat times; a Repeat of 0 is 1.
func Cpy(r *Recorder, a shaders.CpyArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	a.Repeat = cmp.Or(a.Repeat, 1)
	c := check{choice: choice{op: "cpy"}}
	c.words("X", a.X)
	c.words("Dst", a.Dst)
	c.stride("XStride", a.XStride, a.Cols)
	c.stride("DstStride", a.DstStride, a.Cols)
	c.multiple("Rows", a.Rows, a.Repeat)
	var t touch
	t.read(f32s(a.X, a.Rows/a.Repeat, a.Cols, a.XStride))
	t.write(f32s(a.Dst, a.Rows, a.Cols, a.DstStride))
	return record(r, &c, &a, a.Workgroups(), &t, cost{bytes: 8 * float64(a.Rows) * float64(a.Cols)})
}

// checkEach checks the addresses of count values that an op computes from as many others, and returns what it touches.
func checkEach(c *check, x, dst uint64, count uint32) (t touch) {
	c.words("X", x)
	c.words("Dst", dst)
	t.read(f32s(x, 1, count, 0))
	t.write(f32s(dst, 1, count, 0))
	return t
}

// checkEachPair is checkEach for an op of two operands; b has a number of values of its own.
func checkEachPair(c *check, a, b, dst uint64, count, bCount uint32) (t touch) {
	c.words("A", a)
	c.words("B", b)
	c.words("Dst", dst)
	t.read(f32s(a, 1, count, 0))
	t.read(f32s(b, 1, bCount, 0))
	t.write(f32s(dst, 1, count, 0))
	return t
}

// finite checks that x is neither NaN nor infinite.
func (c *check) finite(what string, x float32) {
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		c.require(false, what, x, "a finite number")
	}
}

// eachCost is the cost of count values of so many bytes and operations each.
func eachCost(count uint32, bytes, flops float64) cost {
	return cost{bytes * float64(count), flops * float64(count)}
}
