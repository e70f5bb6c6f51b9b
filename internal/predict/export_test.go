package predict

import (
	"time"

	"leat/internal/arch"
	"leat/internal/plan"
)

// EveryRow is [Plan] for an engine whose last layer computes rows that want no logits, too.
func EveryRow(p *plan.Plan, s Speeds, h *arch.Hyper, ctx, promptTokens int) Prediction {
	m := newCostModel(p, s, h)
	for i := range m.loads {
		m.loads[i].last = false
	}
	r := Prediction{Context: ctx, Prompt: promptTokens}
	r.predictDecode(m)
	r.predictPrefill(m)
	return r
}

// ZipfHitRate is zipfHitRate for tests.
var ZipfHitRate = zipfHitRate

// Constants are those of FromDataSheet that rows of measurements tell, by name; set changes one.
func Constants() (names []string, get func(name string) float64, set func(name string, x float64)) {
	numbers := map[string]*float64{"decode": &reached.decode, "matrix": &reached.matrix, "experts": &reached.experts, "halves": &reached.halves}
	times := map[string]*time.Duration{"dispatch": &reached.dispatch, "route": &reached.route}
	get = func(name string) float64 {
		if d, ok := times[name]; ok {
			return float64(*d)
		}
		return *numbers[name]
	}
	set = func(name string, x float64) {
		if d, ok := times[name]; ok {
			*d = time.Duration(x)
			return
		}
		*numbers[name] = x
	}
	return []string{"decode", "dispatch", "route", "matrix", "halves", "experts"}, get, set
}
