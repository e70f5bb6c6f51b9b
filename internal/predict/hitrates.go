package predict

import (
	"math"

	"leat/internal/plan"
)

// SpeedAtHitRate is how fast a model decodes at a given hit rate of its experts.
type SpeedAtHitRate struct {
	Rate         float64 `json:"hit_rate"`                 // share of needed experts that are in VRAM
	DecodePerSec float64 `json:"decode_tokens_per_second"` // decoded tokens a second
}

// hitRates are the hit rates for which [Prediction.HitRates] predicts decoding.
var hitRates = []float64{0, 0.25, 0.5, 0.75, 0.9, 1}

// skewedRate is the hit rate if a layer's experts are used by Zipf's law (the n-th most used one an n-th as often as the first) and the
// slots hold the most used ones.
func skewedRate(x *plan.Experts) (rate float64) {
	for i := range x.Classes {
		c := &x.Classes[i]
		layers := float64(len(c.Layers))
		rate += layers / float64(x.Layers) * zipfHitRate(x.Count, x.Used, float64(c.Slots())/layers)
	}
	return rate
}

// zipfHitRate is the hit rate of slots that hold the most used experts of a layer with count experts, if each token uses used of them, drawn by Zipf's law.
func zipfHitRate(count, used int, slots float64) float64 {
	if used >= count || slots >= float64(count) {
		return min(1, slots/float64(count))
	}
	sum := func(lambda float64, upto float64) (n float64) { // how many of the upto most used experts are drawn
		for i := 1; float64(i-1) < upto; i++ {
			n += min(1, upto-float64(i-1)) * -math.Expm1(-lambda/float64(i))
		}
		return n
	}
	low, high := 0.0, 1.0
	for sum(high, float64(count)) < float64(used) {
		high *= 2
	}
	for range 60 {
		if mid := (low + high) / 2; sum(mid, float64(count)) < float64(used) {
			low = mid
		} else {
			high = mid
		}
	}
	return sum(high, slots) / float64(used)
}
