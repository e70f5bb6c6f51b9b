package shaders

// The kernels that compute each value by itself.

// GLUArgs: Dst[i] = act(Gate[i]) * Up[i], act SiLU (swiglu), GELU's tanh form (geglu) or its exact form (geglu_erf). Dst may be Gate or Up.
type GLUArgs struct {
	Gate, Up, Dst uint64
	Count, _      uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *GLUArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }

// UnaryArgs: Dst[i] = act(X[i]), act GELU's tanh form (gelu), its exact form (gelu_erf) or max(x, 0)² (relu2). Dst may be X.
type UnaryArgs struct {
	X, Dst   uint64
	Count, _ uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *UnaryArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }

// XIELUArgs: Dst[i] = AlphaP * x² + Beta * x where x, X[i], is above 0, else AlphaN * (exp(min(x, Eps)) - 1 - x) + Beta * x. Dst may be X.
type XIELUArgs struct {
	X, Dst                    uint64
	Count                     uint32
	AlphaP, AlphaN, Beta, Eps float32
	_                         uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *XIELUArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }

// ClampArgs: Dst[i] = X[i], but at least Min and at most Max. Dst may be X.
type ClampArgs struct {
	X, Dst   uint64
	Count    uint32
	Min, Max float32
	_        uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *ClampArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }

// AddArgs: Dst[i] = A[i] + B[i % BCols]. Dst may be A.
type AddArgs struct {
	A, B, Dst    uint64
	Count, BCols uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *AddArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }

// AddScaledArgs: Dst[i] = A[i] + Factor * B[i]. Dst may be A or B.
type AddScaledArgs struct {
	A, B, Dst uint64
	Count     uint32
	Factor    float32
}

// Workgroups counts the workgroups: one lane per value.
func (a *AddScaledArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }

// AddRowsArgs: Dst (Rows, Cols) += the rows of Table (any, Cols) that IDs (Rows) uint32 name.
type AddRowsArgs struct {
	Table, IDs, Dst uint64
	Rows, Cols      uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *AddRowsArgs) Workgroups() uint64 { return groups(uint64(a.Rows)*uint64(a.Cols), lanes) }

// MulArgs: Dst[i] = A[i] * B[i / Repeat % BCount]. With Repeat 1 and a BCount of a row's values B is a weight of each row, with Repeat a row's values B has a
// factor for each row. Dst may be A.
type MulArgs struct {
	A, B, Dst                uint64
	Count, Repeat, BCount, _ uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *MulArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }

// ScaleArgs: Dst[i] = Factor * X[i]. Dst may be X.
type ScaleArgs struct {
	X, Dst uint64
	Count  uint32
	Factor float32
}

// Workgroups counts the workgroups: one lane per value.
func (a *ScaleArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }

// SoftCapArgs: Dst[i] = Cap * tanh(Factor * X[i] / Cap), where Factor * X[i] is finite; else that. Dst may be X.
type SoftCapArgs struct {
	X, Dst      uint64
	Count       uint32
	Factor, Cap float32
	_           uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *SoftCapArgs) Workgroups() uint64 { return groups(uint64(a.Count), lanes) }
