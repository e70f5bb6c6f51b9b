package arch

import "math"

// RowScale is a factor of rows that grows with their position: 1 + Factor*log(1 + floor((position + Offset)/Length)). Queries that [ScaleRows] multiplies by it
// stay as sharp in long contexts as in those that the model was trained on.
type RowScale struct {
	Factor float64 // factor of the logarithm; 0: the model has no ScaleRows
	Length int     // number of positions in a row that have the same factor
	Offset int     // added to the position
}

// At is the factor of a row at a position.
func (s *RowScale) At(position int) float32 {
	if s.Factor == 0 {
		return 1
	}
	return float32(1 + s.Factor*math.Log1p(float64((position+s.Offset)/s.Length)))
}
