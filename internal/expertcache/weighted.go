package expertcache

import (
	"fmt"
	"math"
)

// weighted evicts what is worth least: every use is worth 1, and half of that a half-life
// later (Lee et al., LRFU). A short one makes it an LRU, a long one an LFU. What was
// evicted keeps its worth.
type weighted struct {
	life  float64 // half-life of a use, in steps
	score scores
	heap  heap
	dear  []float64 // by expert: log2 of how many times others' a use counts
}

func (p *weighted) Name() string { return fmt.Sprintf("weighted:%g", p.life) }

func (p *weighted) Reset(layers, perLayer int) {
	p.score = newScores(layers*perLayer, p.life)
	p.heap = newHeap(layers * perLayer)
	p.dear = make([]float64, layers*perLayer)
}

// Weigh makes an expert dearer.
func (p *weighted) Weigh(e Expert, times float64) { p.dear[e] = math.Log2(times) }

func (p *weighted) Begin(step int64, _ int) { p.score.now = float64(step) }

func (p *weighted) Add(e Expert) { p.heap.push(e, p.score.use(e)+p.dear[e]) }

func (p *weighted) Use(e Expert) { p.heap.change(e, p.score.use(e)+p.dear[e]) }

func (p *weighted) Remove(e Expert) { p.heap.remove(e) }

func (p *weighted) Victim(pinned func(Expert) bool) (Expert, bool) { return p.heap.least(pinned) }

// scores are the worth of all experts. As all lose it at one rate, their order changes
// with uses alone: what is kept is the logarithm of the worth at step 0.
type scores struct {
	life float64
	now  float64
	log  []float64
}

func newScores(n int, life float64) scores {
	s := scores{life: life, log: make([]float64, n)}
	for i := range s.log {
		s.log[i] = math.Inf(-1)
	}
	return s
}

// use adds 1 to an expert's worth and returns the logarithm.
func (s *scores) use(e Expert) float64 {
	now := s.now / s.life // log2 of what is worth 1 now
	old := s.log[e]
	if math.IsInf(old, -1) {
		s.log[e] = now
	} else {
		s.log[e] = now + math.Log2(1+math.Exp2(old-now))
	}
	return s.log[e]
}

// heap finds the expert of least worth; a tie goes to the lower number.
type heap struct {
	list []Expert
	at   []int32 // by expert, in list; none: not there
	key  []float64
	held []Expert // pinned ones, set aside
}

func newHeap(n int) heap {
	h := heap{at: make([]int32, n), key: make([]float64, n)}
	for i := range h.at {
		h.at[i] = none
	}
	return h
}

func (h *heap) less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	return h.key[a] < h.key[b] || h.key[a] == h.key[b] && a < b
}

func (h *heap) swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.at[h.list[i]], h.at[h.list[j]] = int32(i), int32(j)
}

func (h *heap) up(i int) {
	for ; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		h.swap(i, (i-1)/2)
	}
}

func (h *heap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.list) {
			return
		}
		if c+1 < len(h.list) && h.less(c+1, c) {
			c++
		}
		if !h.less(c, i) {
			return
		}
		h.swap(i, c)
		i = c
	}
}

func (h *heap) push(e Expert, key float64) {
	h.key[e], h.at[e] = key, int32(len(h.list))
	h.list = append(h.list, e)
	h.up(len(h.list) - 1)
}

func (h *heap) change(e Expert, key float64) {
	h.key[e] = key
	h.up(int(h.at[e]))
	h.down(int(h.at[e]))
}

func (h *heap) remove(e Expert) {
	i, last := int(h.at[e]), len(h.list)-1
	h.swap(i, last)
	h.list = h.list[:last]
	h.at[e] = none
	if i < last {
		moved := h.list[i]
		h.up(i)
		h.down(int(h.at[moved]))
	}
}

// least takes out the one of least worth that is not pinned.
func (h *heap) least(pinned func(Expert) bool) (found Expert, ok bool) {
	h.held, found = h.held[:0], none
	for len(h.list) > 0 && found == none {
		e := h.list[0]
		h.remove(e)
		if pinned(e) {
			h.held = append(h.held, e)
		} else {
			found = e
		}
	}
	for _, e := range h.held {
		h.push(e, h.key[e])
	}
	return found, found != none
}

// rekey gives every expert the key that a list has for it.
func (h *heap) rekey(keys []float64) {
	for _, e := range h.list {
		h.key[e] = keys[e]
	}
	for i := len(h.list)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}
