package experts

import (
	"slices"

	"leat/internal/plan"
	"leat/internal/weights"
	"leat/shaders"
	"leat/vk"
)

// need is which experts a layer needs.
type need struct {
	pairs  []int32 // by expert: of a row and it, in the step
	taken  []bool  // by expert: before the layer was at hand
	ids    []int32 // those with pairs, most pairs first
	hits   []int32
	misses []int32
}

func newNeed(count int) need { return need{pairs: make([]int32, count), taken: make([]bool, count)} }

// list lists the experts that have pairs, those with the most first, less those taken.
func (n *need) list() {
	n.ids = n.ids[:0]
	for id, pairs := range n.pairs {
		if pairs > 0 && !n.taken[id] {
			n.ids = append(n.ids, int32(id))
		}
	}
	slices.SortStableFunc(n.ids, n.more)
}

func (n *need) more(a, b int32) int { return int(n.pairs[b] - n.pairs[a]) }

// waves are batches of experts that are in VRAM at a time, and which experts the layer at hand needs.
type waves struct {
	o        *Options
	x        *weights.Experts
	need     need
	present  *weights.Batch    // of the layer at hand: those in VRAM
	coming   *weights.Batch    // those uploaded first
	next     *weights.Batch    // and then
	prefetch [2]*weights.Batch // present and coming, of the next layer
	early    int               // the layer that prefetch is of; nothing: none
	keep     int               // experts uploaded for the layer that may stay
	keepNext int               // the same of the next layer
	table    []byte            // (matrices, E) uint64 addresses
	points   []vk.Point        // scratch
}

func (w *waves) init(o *Options) {
	x, count := o.Weights.Experts(), o.Frame.Hyper.Experts.Count
	w.o, w.x, w.need = o, x, newNeed(count)
	w.present, w.coming, w.next = x.NewBatch(), x.NewBatch(), x.NewBatch()
	w.prefetch = [2]*weights.Batch{x.NewBatch(), x.NewBatch()}
	w.early, w.table = nothing, make([]byte, 8*matrices*count)
}

// first takes those of the layer's experts that are in VRAM, and some of the others, unless they were prefetched. It returns those left.
func (w *waves) first(l Layer) (rest []int32, err error) {
	n := &w.need
	w.x.Begin(w.o.Queue.Commands.Step(), l.Layer)
	clear(n.taken)
	if w.early == l.Layer {
		w.present, w.coming, w.prefetch[0], w.prefetch[1] = w.prefetch[0], w.prefetch[1], w.present, w.coming
		w.keep, w.early = w.keepNext, nothing
		for _, b := range []*weights.Batch{w.present, w.coming} {
			for i := range b.Len() {
				n.taken[b.ID(i)] = true
			}
		}
		n.list()
		return n.ids, nil
	}
	w.keep = w.mayStay(l.Layer)
	w.split(l.Layer)
	if _, err := w.take(l.Layer, n.hits, w.present, len(n.hits)); err != nil {
		return nil, err
	}
	return w.take(l.Layer, n.misses, w.coming, w.most(l.Layer))
}

// split lists what the layer needs, and which of that is missing.
func (w *waves) split(layer int) {
	n := &w.need
	n.list()
	n.hits, n.misses = w.x.Split(layer, n.ids, n.hits[:0], n.misses[:0])
	w.merge()
}

// merge runs present and missing experts in one wave, where each has a fixed cost.
func (w *waves) merge() {
	if n := &w.need; w.o.Merge && len(n.misses) > 0 {
		n.misses = append(n.misses, n.hits...)
		n.hits = n.hits[:0]
	}
}

// mayStay is how many of a layer's experts that a step uploads may stay once they were used. Few rows say which are wanted next; a prompt
// uses almost all once, and must not evict those of other layers, which it needs as well.
func (w *waves) mayStay(layer int) int {
	if w.o.Frame.AtHand.N <= shaders.FewRows {
		return w.o.Frame.Hyper.Experts.Count
	}
	return max(0, w.x.Share(layer)-w.x.Present(layer))
}

// most is how many of a layer's experts are uploaded at a time.
func (w *waves) most(layer int) int {
	if w.o.Merge {
		return w.o.Frame.Hyper.Experts.Count
	}
	return w.x.Wave(layer)
}

// prefetchNext has experts of the next layer uploaded that a prompt needs in all likelihood, once all of this layer's are under way.
func (w *waves) prefetchNext(l Layer) error {
	n, f := &w.need, w.o.Frame
	m := &f.Hyper.Experts
	if w.early != nothing || f.AtHand.N <= shaders.FewRows || f.AtHand.N*m.Used < plan.PrefetchPairs*m.Count {
		return nil
	}
	layer := nextSlottedLayer(w.o.Plan, l.Unit)
	if layer == nothing || f.Batch.Keeps && layer == f.Hyper.BlockCount-1 {
		return nil
	}
	w.early, w.keepNext = layer, w.mayStay(layer)
	w.x.Begin(w.o.Queue.Commands.Step(), layer)
	n.ids = n.ids[:0]
	for id := range m.Count {
		n.ids = append(n.ids, int32(id))
	}
	n.hits, n.misses = w.x.Split(layer, n.ids, n.hits[:0], n.misses[:0])
	w.merge()
	if _, err := w.take(layer, n.hits, w.prefetch[0], len(n.hits)); err != nil {
		return err
	}
	_, err := w.take(layer, n.misses, w.prefetch[1], plan.PrefetchWaves*w.most(layer))
	return err
}

// take takes the first of ids, at most so many, into a batch and returns the others.
func (w *waves) take(layer int, ids []int32, b *weights.Batch, most int) (rest []int32, err error) {
	if len(ids) == 0 {
		return ids, nil
	}
	n, err := b.Take(w.o.Queue.Commands.Context(), layer, ids[:min(most, len(ids))])
	return ids[n:], err
}
