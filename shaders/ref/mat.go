package ref

// Mat is a float32 matrix (Rows, Cols); row i starts at Data[i*Stride].
type Mat struct {
	Data               []float32
	Rows, Cols, Stride int
}

// NewMat returns a zero matrix (rows, cols) without gaps.
func NewMat(rows, cols int) Mat {
	return Mat{Data: make([]float32, rows*cols), Rows: rows, Cols: cols, Stride: cols}
}

// Row is row i, shape (Cols).
func (m Mat) Row(i int) []float32 {
	return m.Data[i*m.Stride : i*m.Stride+m.Cols]
}
