package expertcache

import "slices"

// Result is how often a cache with a policy and a number of slots found a trace's experts.
type Result struct {
	Policy string `json:"policy"`
	Slots  int    `json:"slots"`
	Stats
	Decode  Stats `json:"decode"`  // of that, steps of one row
	Prefill Stats `json:"prefill"` // steps of more
	Late    Stats `json:"late"`    // the second half of the steps: the cache is warm
}

// Replay runs a trace through a cache with a policy. In each layer of a step it takes the experts of all rows
// once; where these are more than the slots, some at a time.
func Replay(t *Routing, slots int, p Policy) (Result, error) {
	c, err := NewCache(t.Layers, t.Experts, slots, p)
	if err != nil {
		return Result{}, err
	}
	r := Result{Policy: p.Name(), Slots: slots}
	seen := make([]bool, t.Experts)
	var ids []int32
	var taken []Taken
	for i, s := range t.Steps {
		before := c.Stats()
		for layer := range t.Layers {
			c.Begin(int64(i+1), layer)
			ids = t.distinct(s, layer, seen, ids[:0])
			for rest := ids; len(rest) > 0; {
				taken = c.Take(layer, rest, taken[:0])
				rest = c.without(rest, layer, taken)
				for _, one := range taken {
					c.Release(one)
				}
			}
		}
		r.count(c.Stats().less(before), s.Rows == 1, 2*i >= len(t.Steps))
	}
	r.Stats = c.Stats()
	return r, nil
}

// without removes from ids what was taken.
func (c *Cache) without(ids []int32, layer int, taken []Taken) []int32 {
	if len(taken) == len(ids) {
		return nil
	}
	return slices.DeleteFunc(ids, func(id int32) bool { return among(taken, c.expert(layer, id)) })
}

func (r *Result) count(s Stats, decode, late bool) {
	if decode {
		r.Decode = r.Decode.plus(s)
	} else {
		r.Prefill = r.Prefill.plus(s)
	}
	if late {
		r.Late = r.Late.plus(s)
	}
}

func (s Stats) less(b Stats) Stats {
	return Stats{s.Hits - b.Hits, s.Misses - b.Misses, s.Evictions - b.Evictions}
}

func (s Stats) plus(b Stats) Stats {
	return Stats{s.Hits + b.Hits, s.Misses + b.Misses, s.Evictions + b.Evictions}
}

// Optimum replays a trace with the policy that knows what comes (Belady): it evicts what is used
// again last.
func Optimum(t *Routing, slots int) (Result, error) {
	return Replay(t, slots, &clairvoyant{routing: t})
}

// clairvoyant is the best policy possible: it evicts the expert that the trace uses again last. It must know the trace.
type clairvoyant struct {
	routing *Routing
	heap    heap
	uses    [][]int64 // by expert: steps that use it, those to come
	step    int64
	layers  int
	per     int
}

func (p *clairvoyant) Name() string { return "optimum" }

func (p *clairvoyant) Reset(layers, perLayer int) {
	p.heap, p.uses, p.layers, p.per = newHeap(layers*perLayer), make([][]int64, layers*perLayer), layers, perLayer
	seen := make([]bool, perLayer)
	var ids []int32
	for i, s := range p.routing.Steps {
		for layer := range layers {
			ids = p.routing.distinct(s, layer, seen, ids[:0])
			for _, id := range ids {
				e := layer*perLayer + int(id)
				p.uses[e] = append(p.uses[e], int64(i+1))
			}
		}
	}
}

func (p *clairvoyant) Begin(step int64, _ int) { p.step = step }

// next is the key of an expert that is used now: the later it is used again, the less.
func (p *clairvoyant) next(e Expert) float64 {
	for len(p.uses[e]) > 0 && p.uses[e][0] <= p.step {
		p.uses[e] = p.uses[e][1:]
	}
	if len(p.uses[e]) == 0 {
		return -float64(len(p.routing.Steps)+2) * float64(p.layers)
	}
	return -(float64(p.uses[e][0])*float64(p.layers) + float64(int(e)/p.per))
}

func (p *clairvoyant) Add(e Expert) { p.heap.push(e, p.next(e)) }

func (p *clairvoyant) Use(e Expert) { p.heap.change(e, p.next(e)) }

func (p *clairvoyant) Remove(e Expert) { p.heap.remove(e) }

func (p *clairvoyant) Victim(pinned func(Expert) bool) (Expert, bool) { return p.heap.least(pinned) }
