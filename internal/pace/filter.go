package pace

import "math"

// filter is an extended Kalman filter over a simple thermal model: a cooler that a duty
// heats and the air cools, and a die on it that is hotter by what it burns just now,
//
//	d cooler/dt = a + b·duty − c·(cooler − ref)
//	d die/dt    = (h·duty − die) / dieSeconds
//	temperature = cooler + die
//
// It learns how hard this device heats (b, h), how fast it leaks (c) and what else heats
// it (a) while it follows the temperature. Sensors give whole degrees: what rounding can
// explain of a difference corrects the model a little only, so that a rounded
// temperature causes no hunting, and still leads to the edge between two readings.
type filter struct {
	ref float64                 // °C: the first reading
	x   [states]float64         // the states, as estimated
	p   [states][states]float64 // the covariance of their errors
}

// What the states are.
const (
	cooler  = iota // °C over ref
	ambient        // a, °C/s
	heating        // ln b, of °C/s
	leak           // ln c, of 1/s
	die            // °C over the cooler
	jump           // h, °C
	states
)

const (
	dieSeconds = 2.0
	rounding   = 0.5  // °C by which a reading may differ from the truth
	insideGain = 0.12 // weight of a difference that rounding can explain
	noise      = 1.2  // °C; much, as readings within one degree repeat each other
)

var (
	// guess is what is believed of a device before anything is known, and doubt the
	// standard deviation of that: most heat by 0.1 to 5 °C/s and leak it in 15 to 150 s.
	guess = [states]float64{heating: math.Log(0.6), leak: math.Log(1.0 / 50), jump: 4}
	doubt = [states]float64{cooler: 0.5, ambient: 0.1, heating: 1.2, leak: 1, die: 1, jump: 4}
	// wander is how fast each may change, by the square root of seconds.
	wander = [states]float64{cooler: 0.1, ambient: 0.01, heating: 0.02, leak: 0.02, die: 0.1, jump: 0.05}
	// most is the doubt that is never exceeded: a long steady state teaches nothing, and
	// must not make the filter forget what it knew.
	most = [states]float64{cooler: 3, ambient: 0.3, heating: 1.2, leak: 1, die: 2, jump: 4}
	// What devices can be.
	lowest  = [states]float64{cooler: -300, ambient: -20, heating: math.Log(0.01), leak: math.Log(1.0 / 2000), die: -10, jump: 0}
	highest = [states]float64{cooler: 300, ambient: 20, heating: math.Log(20), leak: math.Log(1.0 / 4), die: 30, jump: 25}
)

// newFilter knows a device's temperature, and nothing else of it.
func newFilter(tempC float64) *filter {
	f := &filter{ref: tempC, x: guess}
	for i, s := range doubt {
		f.p[i][i] = s * s
	}
	return f
}

// temp is the model's temperature.
func (f *filter) temp() float64 { return f.ref + f.x[cooler] + f.x[die] }

// restart sets the model's temperature. It keeps what was learnt of the device.
func (f *filter) restart(tempC float64) {
	f.x[cooler], f.x[die] = tempC-f.ref, 0
	for _, i := range []int{cooler, die} {
		f.p[i] = [states]float64{}
		for k := range states {
			f.p[k][i] = 0
		}
		f.p[i][i] = doubt[i] * doubt[i]
	}
}

// response predicts the temperature after some seconds of a duty: start + gain·duty.
func (f *filter) response(seconds float64) (start, gain float64) {
	c := math.Exp(f.x[leak])
	kept, grown := math.Exp(-c*seconds), (1-math.Exp(-c*seconds))/c
	cold := math.Exp(-seconds / dieSeconds)
	start = f.ref + f.x[cooler]*kept + f.x[ambient]*grown + f.x[die]*cold
	return start, math.Exp(f.x[heating])*grown + f.x[jump]*(1-cold)
}

// move moves the states on by some seconds of a duty.
func (f *filter) move(seconds, duty float64) {
	c := math.Exp(f.x[leak])
	kept, grown := math.Exp(-c*seconds), (1-math.Exp(-c*seconds))/c
	cold := math.Exp(-seconds / dieSeconds)
	f.x[cooler] = f.x[cooler]*kept + (f.x[ambient]+math.Exp(f.x[heating])*duty)*grown
	f.x[die] = f.x[die]*cold + f.x[jump]*duty*(1-cold)
}

// predict moves states and covariance on by some seconds of a duty.
func (f *filter) predict(seconds, duty float64) {
	b, c := math.Exp(f.x[heating]), math.Exp(f.x[leak])
	cold := math.Exp(-seconds / dieSeconds)
	var j [states][states]float64 // the derivative of move
	for i := range states {
		j[i][i] = 1
	}
	j[cooler] = [states]float64{cooler: math.Exp(-c * seconds), ambient: seconds, heating: seconds * b * duty, leak: -seconds * c * f.x[cooler]}
	j[die] = [states]float64{die: cold, jump: duty * (1 - cold)}
	f.move(seconds, duty)
	f.p = times(times(j, f.p), transposed(j))
	for i, q := range wander {
		f.p[i][i] += q * q * seconds
	}
	f.bound()
}

// correct corrects the states by a reading.
func (f *filter) correct(tempC float64) {
	off := tempC - f.temp()
	off -= (1 - insideGain) * min(max(off, -rounding), rounding)
	var seen [states]float64 // how each state shows in a reading
	for i := range states {
		seen[i] = f.p[i][cooler] + f.p[i][die]
	}
	s := seen[cooler] + seen[die] + noise*noise
	for i := range states {
		f.x[i] += seen[i] / s * off
		for k := range states {
			f.p[i][k] -= seen[i] * seen[k] / s
		}
	}
	f.bound()
}

// bound keeps states and covariance within what devices can be.
func (f *filter) bound() {
	for i := range states {
		f.x[i] = min(max(f.x[i], lowest[i]), highest[i])
		if over := math.Sqrt(max(f.p[i][i], 0)) / most[i]; over > 1 {
			for k := range states {
				f.p[i][k] /= over
				f.p[k][i] /= over
			}
		}
	}
}

// times is the product of two matrices.
func times(a, b [states][states]float64) (c [states][states]float64) {
	for i := range states {
		for k := range states {
			for n := range states {
				c[i][k] += a[i][n] * b[n][k]
			}
		}
	}
	return c
}

// transposed is a matrix with rows and columns exchanged.
func transposed(a [states][states]float64) (t [states][states]float64) {
	for i := range states {
		for k := range states {
			t[k][i] = a[i][k]
		}
	}
	return t
}
