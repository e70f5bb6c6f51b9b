package shaders

// RMSNormArgs: Dst = Scale * X / sqrt(mean(X²) + Eps) * W by row; X, Dst (Rows, Cols). Rows are the heads of a step's rows, Heads of each: row r has weights
// r % Heads of W (Heads, Cols). With Heads 1 all rows have the same, with W 0 none. Dst may be X.
type RMSNormArgs struct {
	X, W, Dst                      uint64
	Rows, Cols, XStride, DstStride uint32
	Eps, Scale                     float32
	Heads, _                       uint32
}

// Workgroups counts the workgroups of a pipeline whose ROW_LANES are ofRow.
func (a *RMSNormArgs) Workgroups(ofRow uint32) uint64 { return rowGroups(a.Rows, ofRow) }

// RowLanes are the lanes that a row should have.
func (a *RMSNormArgs) RowLanes() uint32 { return lanesOfRow(a.Cols) }

// NormArgs: Dst = (X - mean(X)) / sqrt(var(X) + Eps) * W + B by row. Rows, Heads and W are those of [RMSNormArgs], B (Heads, Cols) is as W: 0 for none.
// Dst may be X.
type NormArgs struct {
	X, W, B, Dst                   uint64
	Rows, Cols, XStride, DstStride uint32
	Eps                            float32
	Heads                          uint32
}

// Workgroups counts the workgroups of a pipeline whose ROW_LANES are ofRow.
func (a *NormArgs) Workgroups(ofRow uint32) uint64 { return rowGroups(a.Rows, ofRow) }

// RowLanes are the lanes that a row should have.
func (a *NormArgs) RowLanes() uint32 { return lanesOfRow(a.Cols) }

// rowGroups counts the workgroups for rows that have ofRow of a workgroup's lanes each.
func rowGroups(rows, ofRow uint32) uint64 { return groups(uint64(rows), uint64(rowLanes/ofRow)) }

// lanesOfRow is as many lanes as a row has runs of 4 values, but all for a long one.
func lanesOfRow(cols uint32) uint32 {
	n := uint32(8)
	for ; n < rowLanes && 4*n < cols; n *= 2 {
	}
	return n
}
