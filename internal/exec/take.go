package exec

import (
	"slices"

	"leat/internal/plan"
	"leat/internal/weights"
)

// first takes those of the layer's experts that are there, and some of the others, unless that was done before the layer
// was at hand. It returns those that are left.
func (r *run) first(layer int) (rest []int32, err error) {
	w, x := &r.e.waves, r.e.Weights.Experts()
	x.Begin(r.step, layer)
	clear(w.taken)
	if w.ahead == layer {
		w.there, w.coming, w.early[0], w.early[1] = w.early[0], w.early[1], w.there, w.coming
		w.keep[0], w.ahead = w.keep[1], nothing
		for _, b := range []*weights.Batch{w.there, w.coming} {
			for i := range b.Len() {
				w.taken[x.ID(b, i)] = true
			}
		}
		w.list()
		return w.ids, nil
	}
	w.keep[0] = r.mayStay(layer)
	w.list()
	w.hits, w.misses = x.Split(layer, w.ids, w.hits[:0], w.misses[:0])
	if r.parts {
		r.e.ahead.noted(len(w.misses))
	}
	r.together()
	if _, err := r.take(layer, w.hits, w.there, len(w.hits)); err != nil {
		return nil, err
	}
	return r.take(layer, w.misses, w.coming, r.most(layer))
}

// mayStay is how many of a layer's experts that a step brings may stay once they were used. Few rows say who is wanted next;
// a prompt uses almost all once, and must not push out those of other layers, which it needs as well.
func (r *run) mayStay(layer int) int {
	if !r.grouped() {
		return r.e.Hyper.Experts.Count
	}
	x := r.e.Weights.Experts()
	return max(0, x.Share(layer)-x.Present(layer))
}

// most is how many of a layer's experts come at a time.
func (r *run) most(layer int) int {
	if x := r.e.Weights.Experts(); !r.e.Together {
		return x.Wave(layer)
	}
	return r.e.Hyper.Experts.Count
}

// together has what is there run with what comes: each wave costs a CPU its beginnings, and nothing comes meanwhile.
func (r *run) together() {
	if w := &r.e.waves; r.e.Together && len(w.misses) > 0 {
		w.misses = append(w.misses, w.hits...)
		w.hits = w.hits[:0]
	}
}

// early has experts of the next layer come that a step needs in all likelihood, now that all of this layer's are under way.
func (r *run) early() error {
	w, x, m := &r.e.waves, r.e.Weights.Experts(), &r.e.Hyper.Experts
	if w.ahead != nothing || !r.grouped() || len(r.rows)*m.Used < plan.AlmostAll*m.Count {
		return nil
	}
	layer := r.nextCached()
	if layer == nothing || r.keeps && layer == r.e.Hyper.BlockCount-1 {
		return nil
	}
	w.ahead, w.keep[1] = layer, r.mayStay(layer)
	x.Begin(r.step, layer)
	w.ids = w.ids[:0]
	for id := range m.Count {
		w.ids = append(w.ids, int32(id))
	}
	w.hits, w.misses = x.Split(layer, w.ids, w.hits[:0], w.misses[:0])
	r.together()
	if _, err := r.take(layer, w.hits, w.early[0], len(w.hits)); err != nil {
		return err
	}
	_, err := r.take(layer, w.misses, w.early[1], plan.EarlyWaves*r.most(layer))
	return err
}

// list lists the experts that have pairs, those with the most first, less what is taken.
func (w *waves) list() {
	w.ids = w.ids[:0]
	for id, n := range w.pairs {
		if n > 0 && !w.taken[id] {
			w.ids = append(w.ids, int32(id))
		}
	}
	slices.SortStableFunc(w.ids, w.more)
}

func (w *waves) more(a, b int32) int { return int(w.pairs[b] - w.pairs[a]) }

// take takes the first of ids, at most so many, into a batch and returns the others.
func (r *run) take(layer int, ids []int32, b *weights.Batch, most int) (rest []int32, err error) {
	if len(ids) == 0 {
		return ids, nil
	}
	n, err := r.e.Weights.Experts().Take(r.ctx, layer, ids[:min(most, len(ids))], b)
	return ids[n:], err
}
