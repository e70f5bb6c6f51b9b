package sample

import "math"

// exp(x) = 2^(k/64) · exp(r): a table gives the first factor, four terms the other, r being below ln 2 / 128.
const (
	expSteps = 64
	expStep  = math.Ln2 / expSteps
	expLeast = -700 // below it exp counts as 0
)

var expTable = func() (t [expSteps]uint64) {
	for i := range t {
		t[i] = math.Float64bits(math.Exp2(float64(i) / expSteps))
	}
	return t
}()

// expSplit is the k of an x from expLeast to 0.
func expSplit(x float64) int64 { return int64(float64(x*(1/expStep)) - 0.5) }

// expOf is exp(x), to 12 digits or more and five times as fast as math.Exp. The conversions keep
// a compiler from fusing operations, so that all machines choose the same tokens.
func expOf(x float64, k int64) float64 {
	r := x - float64(float64(k)*expStep)
	p := float64(r*(1.0/24)) + 1.0/6
	p = float64(p*r) + 0.5
	p = float64(p*r) + 1
	p = float64(p*r) + 1
	return p * math.Float64frombits(expTable[k&(expSteps-1)]+uint64(k>>6)<<52)
}

// exp is exp(x) of an x of at most 0, and 0 of what is not a number.
func exp(x float64) float64 {
	if !(x >= expLeast) {
		return 0
	}
	return expOf(x, expSplit(x))
}
