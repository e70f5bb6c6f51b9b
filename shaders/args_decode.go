package shaders

// The kernels of steps of few rows: decoding, for the most part.

// FewRows is the most rows of a step that has kernels of its own.
const FewRows = 8

// Q8Size is what rows take as bytes: the bytes, then, on a multiple of 16, their scales and sums.
func Q8Size(rows, cols uint32) int64 {
	return q8Sums(rows, cols) + (int64(rows)*int64(cols)/4+15)&^15
}

// q8Sums is where the scales and sums begin.
func q8Sums(rows, cols uint32) int64 { return (int64(rows)*int64(cols) + 15) &^ 15 }

// Q8Sums is the address of the scales and sums of rows whose bytes stand at q.
func Q8Sums(q uint64, rows, cols uint32) uint64 { return q + uint64(q8Sums(rows, cols)) }

// RMSNormQ8Args is RMSNormArgs whose Dst is written as Q and S too, as quantize_q8 would. A row has as many workgroups as Parts says, 1 or
// PER, each of which sums the row up for itself and stores a part of it; with several Dst must not be X.
type RMSNormQ8Args struct {
	X, W, Dst, Q, S                uint64
	Rows, Cols, XStride, DstStride uint32
	Eps                            float32
	Parts                          uint32
}

// Workgroups counts the workgroups: those of each row.
func (a *RMSNormQ8Args) Workgroups() uint64 { return uint64(a.Rows) * uint64(a.Parts) }

// QuantizeQ8Args: X (Rows, Cols) becomes blocks of 32 signed bytes Q (Rows, Cols), their scales and sums S
// (Rows, Cols/32, 2): a float32 d, then as two int16 the sum of the first and of the second 16. X is about d * Q.
type QuantizeQ8Args struct {
	X, Q, S                uint64
	Rows, Cols, XStride, _ uint32
}

// Workgroups counts the workgroups: one lane per 4 values.
func (a *QuantizeQ8Args) Workgroups() uint64 {
	return groups(uint64(a.Rows)*uint64(a.Cols)/4, lanes)
}

// MulMatTeamArgs: Dst0, Dst1, Dst2 = X (N, K) · Wᵀ + Bias (M) + Residual of up to three matrices W (M, K) of one type; X is
// floats, or bytes and their S. Where a Bias or the Residual is 0 there is none; a matrix is missing where its M is 0.
//
// Of mul_mat_vec_int8 with weights of NVFP4 a Bias may be a scale instead, one number that the product is multiplied by: its address plus 1.
//
// A kernel made with GLU stores Dst0 = silu(gates) * ups, of gates W0 and ups W1, as large; with GLU 2 as bytes as
// well: Q at Dst1 and S at Dst2.
//
// The strides are those of Dst0, and of the residual that is added to it; the others have none. XStride is floats' alone; of bytes whose weights
// have a grid it is where the grids are, see [MulMatTeamArgs.SetGrids].
type MulMatTeamArgs struct {
	W0, W1, W2, Bias0, Bias1, Bias2, Dst0, Dst1, Dst2, X, S, Residual uint64
	M0, M1, M2, K, N, XStride, DstStride, ResidualStride              uint32
}

// SetGrids puts the address of the grids, a multiple of 16, into XStride, as how many 16 bytes it lies behind S; false: it is too far.
func (a *MulMatTeamArgs) SetGrids(grids uint64) bool {
	apart := int64(grids-a.S) / 16
	a.XStride = uint32(apart)
	return int64(int32(apart)) == apart && grids%16 == 0 && a.S%16 == 0
}

// MulMatStraightArgs are [MulMatTeamArgs] for the variant straight. Steps are N and N + 1, of which the kernel makes numbers that
// its driver sees to be the same for all lanes.
type MulMatStraightArgs struct {
	W0, W1, W2, Bias0, Bias1, Bias2, Dst0, Dst1, Dst2, X, S, Residual uint64
	M0, M1, M2, K                                                     uint32
	Steps                                                             [2]uint32
	DstStride, ResidualStride                                         uint32
}

// Straight returns the same arguments for the variant straight.
func (a *MulMatTeamArgs) Straight() MulMatStraightArgs {
	return MulMatStraightArgs{
		W0: a.W0, W1: a.W1, W2: a.W2, Bias0: a.Bias0, Bias1: a.Bias1, Bias2: a.Bias2, Dst0: a.Dst0, Dst1: a.Dst1, Dst2: a.Dst2, X: a.X, S: a.S, Residual: a.Residual,
		M0: a.M0, M1: a.M1, M2: a.M2, K: a.K, Steps: [2]uint32{a.N, a.N + 1}, DstStride: a.DstStride, ResidualStride: a.ResidualStride,
	}
}

// MulMatRopeArgs: Q (N, heads, KEY), K (N, headsKV, KEY) and V (N, headsKV, VAL) are X (N, K) · Wᵀ + Bias for the weights W0, W1 and
// W2 of one type; X is bytes, and their S. Then it is as [RopeKVArgs]: Q goes to Dst (N, heads, KEY), turned, and K and V go into the cache.
// One whose W is 0 is missing, a Bias of 0 is none. Heads are heads | headsKV << 16.
type MulMatRopeArgs struct {
	W0, W1, W2, Bias0, Bias1, Bias2, X, S, Dst, CosSin, Pages, Pos, Seq uint64
	K, N, Heads, MaxPages, PagePositions, LayerOff                      uint32
}

// Outputs counts the values of a row of X, by the sizes of heads.
func (a *MulMatRopeArgs) Outputs(key, val uint32) uint32 {
	n := uint32(0)
	for _, m := range [...]struct {
		w      uint64
		values uint32
	}{{a.W0, a.Heads & 0xffff * key}, {a.W1, a.Heads >> 16 * key}, {a.W2, a.Heads >> 16 * val}} {
		if m.w != 0 {
			n += m.values
		}
	}
	return n
}

// Workgroups counts the workgroups of a pipeline that makes so many of the outputs, and so many columns, in each.
func (a *MulMatRopeArgs) Workgroups(outputs, of, cols uint32) uint64 {
	return groups(uint64(outputs), uint64(of)) * groups(uint64(a.N), uint64(cols))
}

// GLU of a mul_mat_vec in teams.
const (
	NoGLU     = iota
	GLUFloats // Dst0 alone
	GLUBytes  // Q at Dst1 and S at Dst2 as well
)

// Workgroups counts the workgroups of a pipeline that makes so many rows and columns of the output in each.
func (a *MulMatTeamArgs) Workgroups(glu bool, rows, cols uint32) uint64 {
	m := uint64(a.M0)
	if !glu {
		m += uint64(a.M1) + uint64(a.M2)
	}
	return groups(m, uint64(rows)) * groups(uint64(a.N), uint64(cols))
}
