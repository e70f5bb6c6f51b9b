package ref

import "math"

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }

// allFinite reports whether a block may be written as bytes.
func allFinite(x []float32) bool {
	for _, v := range x {
		if !finite(v) {
			return false
		}
	}
	return true
}
