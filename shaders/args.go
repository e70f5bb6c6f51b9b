package shaders

// The argument structs are the push constants of the kernels: field order is memory
// layout (std430: addresses first), and a test compares each with its SPIR-V.
//
// Addresses are byte addresses and multiples of 16. Activations are float32, row-major;
// a stride counts floats between the starts of two rows. Shapes are outermost first. Grids is the address of the grids of weights of
// [GridTypes], which kernels of other types don't read.
//
// Workgroups says how many workgroups a dispatch needs; x*y may exceed it, so that
// counts above the device's limit fold into y.

// GetRowsArgs: Dst (Rows, Cols) = the rows of Table (any, Cols) that IDs (Rows) uint32 name.
type GetRowsArgs struct {
	Table, IDs, Dst, Grids uint64
	Rows, Cols             uint32
}

// Workgroups counts the workgroups: one lane per run of 8 values.
func (a *GetRowsArgs) Workgroups() uint64 {
	return groups(uint64(a.Rows)*groups(uint64(a.Cols), 8), lanes)
}

// MulMatArgs: Dst (N, M) = X (N, K) · Wᵀ, W (M, K) typed, its rows one after another.
type MulMatArgs struct {
	W, X, Dst, Grids      uint64
	M, K, N               uint32
	XStride, DstStride, _ uint32
}

// Workgroups counts the workgroups of a pipeline whose NUM_ROWS and NUM_COLS are rows and cols.
func (a *MulMatArgs) Workgroups(rows, cols uint32) uint64 {
	return groups(uint64(a.M), uint64(rows)) * groups(uint64(a.N), uint64(cols))
}

// Whole is what to set the constant WHOLE to: 1 lets the kernel leave the checks for a last run of
// less than 8 values out, and read X by 16 bytes. It changes no bit.
func (a *MulMatArgs) Whole() uint32 {
	if a.K%8 == 0 && a.XStride%4 == 0 {
		return 1
	}
	return 0
}

// RopeArgs rotates pairs of X (Rows, Heads, HeadDim) in place by CosSin (Rows, RopeDim/2, 2),
// which the host makes in float64. Neox 0 pairs (2i, 2i+1), 1 pairs (i, i+RopeDim/2).
type RopeArgs struct {
	X, CosSin                                    uint64
	Rows, Heads, HeadDim, RopeDim, XStride, Neox uint32
}

// Workgroups counts the workgroups: one lane per pair.
func (a *RopeArgs) Workgroups() uint64 {
	return groups(uint64(a.Rows)*uint64(a.Heads)*uint64(a.RopeDim/2), lanes)
}

// SoftMaxArgs: Dst = softmax(Scale · X) by row; X, Dst (Rows, Cols). Dst may be X.
type SoftMaxArgs struct {
	X, Dst     uint64
	Rows, Cols uint32
	Scale      float32
	_          uint32
}

// Workgroups counts the workgroups: one per row.
func (a *SoftMaxArgs) Workgroups() uint64 { return uint64(a.Rows) }

// ArgmaxArgs: Dst (Rows) uint32 = column of the greatest of each row of X (Rows, Cols): the lowest
// among equals. Of a row that holds NaN or an infinity it is the first such column, inverted: negative as int32.
//
// With Counters (Rows) uint32, which are 0 before it and after, it is argmax_joined, whose rows are cut into parts of
// [ArgmaxPart] columns; Parts are [ArgmaxPartBytes] for what becomes of them.
type ArgmaxArgs struct {
	X, Dst, Parts, Counters uint64
	Rows, Cols              uint32
}

// ArgmaxPart is the columns of a row that a workgroup of argmax_joined takes.
const ArgmaxPart = 16 * rowLanes

// argmaxParts counts the parts of a row, which begins up to 3 columns behind a multiple of 16 bytes.
func argmaxParts(cols uint32) uint64 { return groups(uint64(cols)+3, ArgmaxPart) }

// ArgmaxPartBytes is the memory that the parts of argmax_joined take: of each its greatest value and its column.
func ArgmaxPartBytes(rows, cols uint32) int64 { return 8 * int64(rows) * int64(argmaxParts(cols)) }

// Workgroups counts the workgroups: one per row, or one per part of a row.
func (a *ArgmaxArgs) Workgroups() uint64 {
	if a.Counters != 0 {
		return uint64(a.Rows) * argmaxParts(a.Cols)
	}
	return uint64(a.Rows)
}

// ChecksumPiece is what a workgroup of checksum reads, in bytes.
const ChecksumPiece = 16 * 16 * rowLanes

// ChecksumArgs: Dst (pieces) uint32 = xor of the words of each piece of Src, Count times 16 bytes.
type ChecksumArgs struct {
	Src, Dst uint64
	Count, _ uint32
}

// Workgroups counts the workgroups: one per piece.
func (a *ChecksumArgs) Workgroups() uint64 { return groups(uint64(a.Count)*16, ChecksumPiece) }

func groups(n, size uint64) uint64 { return (n + size - 1) / size }
