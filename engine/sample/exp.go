package sample

import "math"

// expSteps is how many steps of the table the exponent of 2 has between two whole numbers.
const expSteps = 128

// exp2Table is 2^(i/expSteps).
var exp2Table = func() (t [expSteps]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / expSteps)
	}
	return t
}()

// leastExp is what the table does down to.
const leastExp = -700

// exp is e^x for x ≤ 0 within 1e-12 of its value: a vocabulary of them takes a fraction of what
// math.Exp needs, which is the most of a choice.
func exp(x float64) float64 {
	if x >= leastExp {
		return tableExp(x)
	}
	return math.Exp(x) // denormal, 0 or not a number
}

// tableExp is exp from leastExp on; small enough to be inlined.
func tableExp(x float64) float64 {
	k := int(x*(expSteps/math.Ln2) - 0.5) // the nearest, as x is not above 0
	r := x - float64(k)*(math.Ln2/expSteps)
	return math.Float64frombits(uint64(1023+k>>7)<<52) * exp2Table[k&(expSteps-1)] * (1 + r*(1+r*(1./2+r*(1./6+r*(1./24)))))
}
