package bench

import "slices"

// Spread sums up the values of repetitions.
type Spread struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	MAD    float64   `json:"mad"` // median of the distances to the median
	Values []float64 `json:"values,omitempty"`
}

// NewSpread sums up values, in the order in which they were measured; none is all zero.
func NewSpread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	s := Spread{Median: median(values), Min: slices.Min(values), Max: slices.Max(values), Values: slices.Clone(values)}
	far := make([]float64, len(values))
	for i, v := range values {
		far[i] = max(v-s.Median, s.Median-v)
	}
	s.MAD = median(far)
	return s
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
