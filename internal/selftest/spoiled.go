package selftest

import (
	"math"

	"leat/shaders/ref"
)

// Spoiled is the case c with a NaN or an infinity in every other row of its random matrices.
func Spoiled(c Case) Case {
	build := c.build
	c.Shape += " spoiled"
	c.build = func(j *job) error {
		j.spoils = true
		return build(j)
	}
	return c
}

// spoil sets one value of every other row of x to NaN or an infinity, if the job is for a [Spoiled] case.
func (j *job) spoil(x ref.Mat) {
	if !j.spoils {
		return
	}
	for r := 1; r < x.Rows; r += 2 {
		x.Row(r)[j.rng.IntN(x.Cols)] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0xff800001)}[r/2%4]
	}
}
