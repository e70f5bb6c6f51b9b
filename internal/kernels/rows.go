package kernels

import (
	"leat/shaders"
)

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

// Checksum writes the xor of the words of each [shaders.ChecksumPiece] of Src to Dst uint32. Src has Count times 16 bytes.
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
