package shaders

import (
	"slices"

	"leat/gguf"
)

// Halves in tiles: what tile_f16 and dequant_f16 write and mul_mat_cm reads. A matrix (R, K) is cut into tiles of
// TileRows × 32, stored row after row, tile after tile along K; K is padded with zeros to a multiple of 64.

// TileRows is how many rows of a matrix a tile holds.
const TileRows = 128

const tileStep = 64 // columns that mul_mat_cm takes at a time

// TilesBytes is what a matrix (rows, k) takes in tiles.
func TilesBytes(rows, k uint32) int64 {
	return int64(groups(uint64(rows), TileRows)*TileRows) * int64(groups(uint64(k), tileStep)*tileStep) * 2
}

// TileF16Args: Dst = X (N, K) in tiles, row n times 1/Scales[n], a power of two.
type TileF16Args struct {
	X, Dst, Scales   uint64
	N, K, XStride, _ uint32
}

// Workgroups counts the workgroups: one per row.
func (a *TileF16Args) Workgroups() uint64 { return uint64(a.N) }

// TileF16WideArgs: Tiles = rows in tiles, row n times 1/Scales[n], a power of two. The rows, of whole runs of 4
// values, are X (Rows, Cols) for [Wide], rms_norm of X with W for [Norm], act(X) * W for [SiLU] and [GeLU], W as X; but
// for Wide they are written to Dst too.
type TileF16WideArgs struct {
	X, W, Dst, Tiles, Scales       uint64
	Rows, Cols, XStride, DstStride uint32
	Eps                            float32
	_                              uint32
}

// Workgroups counts the workgroups: one per row.
func (a *TileF16WideArgs) Workgroups() uint64 { return uint64(a.Rows) }

// DequantF16Args: Dst = W (M, K) typed in tiles.
type DequantF16Args struct {
	W, Dst, Grids uint64
	M, K          uint32
}

// Workgroups counts the workgroups for weights of a type: each makes 256 columns of 4 rows, or of rare types, whose lanes decode 16 values, of 8.
func (a *DequantF16Args) Workgroups(t gguf.Type) uint64 {
	rows := uint64(rowLanes / 32)
	if slices.Contains(RareTypes, t) {
		rows = rowLanes / 16
	}
	return groups(uint64(a.M), rows) * groups(groups(uint64(a.K), tileStep)*tileStep, 256)
}

// MulMatCMArgs: Dst (N, M) = X (N, K) · Wᵀ + Residual (N, M), W and X in tiles, row n of the product times Scales[n].
// Residual may be 0: none, or Dst. Of mul_mat_q_cm W is typed, in blocks; made with GLU it has another matrix like W, Up, in place of a
// Residual, and Dst = silu(X · Wᵀ) * (X · Upᵀ).
type MulMatCMArgs struct {
	W, X, Scales, Dst, Residual, Grids uint64
	M, K, N, DstStride, ResidualStride uint32
	_                                  uint32
}

// Workgroups counts the workgroups of a pipeline whose BM and BN are rows and cols.
func (a *MulMatCMArgs) Workgroups(rows, cols uint32) uint64 {
	return groups(uint64(a.M), uint64(rows)) * groups(uint64(a.N), uint64(cols))
}

// ScratchBytes is what products of up to rows rows of X with weights of rows up to k long take: X and its scales in
// tiles, and at least weightBytes to decode weights into.
func ScratchBytes(rows, k uint32, weightBytes int64) int64 {
	return TilesBytes(rows, k) + ScaleBytes(rows) + max(2*TilesBytes(TileRows, k), weightBytes)
}

// ScaleBytes is what the scales of rows take.
func ScaleBytes(rows uint32) int64 { return int64(groups(4*uint64(rows), 256)) * 256 }
