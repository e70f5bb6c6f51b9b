package shaders

// SigmoidMulArgs: Dst = X * sigmoid(gate); X, Dst (Rows, Cols). A row's columns come in groups of Group; column c's gate is value
// c/Group*Jump + c%Group*Step of its row of Gate, so that one gate may be for all (Step and Jump 0), or gates lie between other values. Dst may be X.
type SigmoidMulArgs struct {
	X, Gate, Dst                   uint64
	Rows, Cols, XStride, DstStride uint32
	GateStride, Group, Jump, Step  uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *SigmoidMulArgs) Workgroups() uint64 {
	return groups(uint64(a.Rows)*uint64(a.Cols), lanes)
}

// SwiGLUOAIArgs: Dst[i] = g * sigmoid(Alpha*g) * (u + 1), where g is Gate[i], at most Limit, and u is Up[i], at most Limit from 0. Dst may be Gate or Up.
type SwiGLUOAIArgs struct {
	Gate, Up, Dst uint64
	Count         uint32
	Alpha, Limit  float32
	_             uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *SwiGLUOAIArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }

// CpyArgs: rows of Dst (Rows, Cols) are those of X (Rows / Repeat, Cols), each of which comes Repeat times.
type CpyArgs struct {
	X, Dst                         uint64
	Rows, Cols, XStride, DstStride uint32
	Repeat, _                      uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *CpyArgs) Workgroups() uint64 { return groups(uint64(a.Rows)*uint64(a.Cols), lanes) }

// MulMatHeadsArgs is MulMatArgs for each of Heads heads. Their W (M, K) lie one behind another; a head's part of a row of X, K values, is
// XHead values behind the one before, that of Dst, M values, DstHead.
type MulMatHeadsArgs struct {
	W, X, Dst, Grids      uint64
	M, K, N               uint32
	XStride, DstStride    uint32
	Heads, XHead, DstHead uint32
}

// Workgroups counts the workgroups of a pipeline whose NUM_ROWS and NUM_COLS are rows and cols.
func (a *MulMatHeadsArgs) Workgroups(rows, cols uint32) uint64 {
	return uint64(a.Heads) * groups(uint64(a.M), uint64(rows)) * groups(uint64(a.N), uint64(cols))
}
