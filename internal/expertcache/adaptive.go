package expertcache

import (
	"math"
	"slices"
)

// adaptive is the policy weighted, with the half-life that has done best lately. It finds out by trials: small caches, one for each
// half-life, that see some of the layers and have those layers' share of the slots.
type adaptive struct {
	scores   []scores // by half-life
	heap     heap
	best     int
	perLayer int
	layers   int
	step     int64
	resident int
	trials   []trial
	every    int // layers from one that is tried to the next
	decided  int64
	dear     []float64 // by expert: log2 of how many times others' a use counts
	keys     []float64 // scratch
}

var halfLives = []float64{2, 8, 32, 128, 512, 2048}

const (
	triedLayers = 6   // at least, where there are so many
	decideEvery = 32  // steps
	forget      = 0.7 // of a trial's hits, at every decision
	better      = 1.01
)

// trial is a small cache that remembers only who would be in it.
type trial struct {
	heap heap
	hits float64
}

func (p *adaptive) Name() string { return "adaptive" }

func (p *adaptive) Reset(layers, perLayer int) {
	*p = adaptive{perLayer: perLayer, layers: layers, heap: newHeap(layers * perLayer), every: max(1, layers/triedLayers), best: slices.Index(halfLives, DefaultHalfLife),
		dear: make([]float64, layers*perLayer), keys: make([]float64, layers*perLayer)}
	for _, life := range halfLives {
		p.scores = append(p.scores, newScores(layers*perLayer, life))
		p.trials = append(p.trials, trial{heap: newHeap(layers * perLayer)})
	}
}

// Weigh makes an expert dearer; the trials know nothing of that.
func (p *adaptive) Weigh(e Expert, times float64) { p.dear[e] = math.Log2(times) }

func (p *adaptive) Begin(step int64, _ int) {
	if step != p.step {
		p.step = step
		for i := range p.scores {
			p.scores[i].now = float64(step)
		}
		if step-p.decided >= decideEvery {
			p.decide(step)
		}
	}
}

// decide changes to another half-life where its trial found experts clearly more often.
func (p *adaptive) decide(step int64) {
	p.decided = step
	best := p.best
	for i := range p.trials {
		if p.trials[i].hits > better*p.trials[best].hits {
			best = i
		}
	}
	for i := range p.trials {
		p.trials[i].hits *= forget
	}
	if best != p.best {
		p.best = best
		for e, worth := range p.scores[best].log {
			p.keys[e] = worth + p.dear[e]
		}
		p.heap.rekey(p.keys)
	}
}

func (p *adaptive) use(e Expert) float64 {
	tried := int(e)/p.perLayer%p.every == 0
	for i := range p.scores {
		key := p.scores[i].use(e)
		if tried {
			p.trials[i].use(e, key, p.trialSlots())
		}
	}
	return p.scores[p.best].log[e] + p.dear[e]
}

// trialSlots is the tried layers' share of what is resident.
func (p *adaptive) trialSlots() int {
	tried := (p.layers + p.every - 1) / p.every
	return max(1, p.resident*tried/p.layers)
}

func (t *trial) use(e Expert, key float64, slots int) {
	if t.heap.at[e] != none {
		t.hits++
		t.heap.change(e, key)
		return
	}
	for len(t.heap.list) >= slots {
		t.heap.remove(t.heap.list[0])
	}
	t.heap.push(e, key)
}

func (p *adaptive) Add(e Expert) { p.resident++; p.heap.push(e, p.use(e)) }

func (p *adaptive) Use(e Expert) { p.heap.change(e, p.use(e)) }

func (p *adaptive) Remove(e Expert) { p.resident--; p.heap.remove(e) }

func (p *adaptive) Victim(pinned func(Expert) bool) (Expert, bool) {
	e, ok := p.heap.least(pinned)
	if ok {
		p.resident--
	}
	return e, ok
}
