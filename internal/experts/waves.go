package experts

import (
	"slices"

	"leat/internal/plan"
	"leat/internal/weights"
	"leat/shaders"
	"leat/vk"
)

// need lists the experts that a layer needs: the current layer, or the layer whose experts are prefetched.
type need struct {
	pairs  []int32 // by expert: number of rows that chose the expert
	taken  []bool  // by expert: it was prefetched, so a batch had taken it before the router chose
	ids    []int32 // experts that any row chose and that are not taken, most pairs first
	hits   []int32 // experts in ids that have a slot
	misses []int32 // experts in ids that have no slot; with Options.Merge all of ids, if any has no slot
}

// newNeed makes the lists for layers of count experts.
func newNeed(count int) need { return need{pairs: make([]int32, count), taken: make([]bool, count)} }

// list sets ids to the experts that any row chose and no batch has prefetched, most pairs first.
func (n *need) list() {
	n.ids = n.ids[:0]
	for id, pairs := range n.pairs {
		if pairs > 0 && !n.taken[id] {
			n.ids = append(n.ids, int32(id))
		}
	}
	slices.SortStableFunc(n.ids, n.more)
}

// more compares two experts for sorting: the one with more pairs comes first.
func (n *need) more(a, b int32) int { return int(n.pairs[b] - n.pairs[a]) }

// waves splits the experts of the current layer into batches that fit the slots, one for each wave: a wave computes with one batch while the
// next batch is uploaded.
type waves struct {
	o          *Options          // the runner's options
	x          *weights.Experts  // the slots
	need       need              // the experts of the current layer
	present    *weights.Batch    // the batch of the first wave: experts in VRAM
	coming     *weights.Batch    // the batch of the next wave: experts being uploaded
	next       *weights.Batch    // the batch of the wave after coming
	prefetch   [2]*weights.Batch // batches of the prefetched layer, which become present and coming when that layer runs
	prefetched int               // index of the prefetched layer; noLayer: no layer is prefetched
	keep       int               // how many more experts uploaded for the current layer may stay in slots after use
	keepNext   int               // the value of keep for the prefetched layer
	table      []byte            // (matrices, E) uint64 addresses of the wave being recorded; 0: the expert is not in the wave
	uploads    []vk.Point        // scratch: points, signalled by uploads, that a wave waits for
}

// init makes empty lists and batches.
func (w *waves) init(o *Options) {
	x, count := o.Weights.Experts(), o.Frame.Hyper.Experts.Count
	w.o, w.x, w.need = o, x, newNeed(count)
	w.present, w.coming, w.next = x.NewBatch(), x.NewBatch(), x.NewBatch()
	w.prefetch = [2]*weights.Batch{x.NewBatch(), x.NewBatch()}
	w.prefetched, w.table = noLayer, make([]byte, 8*matrices*count)
}

// takeFirst fills present with the layer's experts in VRAM and coming with the first missing ones, and starts to fetch these. If the layer was prefetched, it
// uses the prefetched batches instead. It returns the needed experts that are in neither batch. It tells the cache's policy that the layer runs, and sets keep.
func (w *waves) takeFirst(l Layer) (untaken []int32, err error) {
	n := &w.need
	w.x.Begin(w.o.Queue.Commands.Step(), l.Layer)
	clear(n.taken)
	if w.prefetched == l.Layer {
		w.present, w.coming, w.prefetch[0], w.prefetch[1] = w.prefetch[0], w.prefetch[1], w.present, w.coming
		w.keep, w.prefetched = w.keepNext, noLayer
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
	return w.take(l.Layer, n.misses, w.coming, w.waveSize(l.Layer))
}

// split sets need.ids to the experts that the layer needs, and splits them into hits, which are in VRAM, and misses.
func (w *waves) split(layer int) {
	n := &w.need
	n.list()
	n.hits, n.misses = w.x.Split(layer, n.ids, n.hits[:0], n.misses[:0])
	w.merge()
}

// merge moves the hits to the misses, so that one wave runs them all, if Options.Merge is set and experts are missing.
func (w *waves) merge() {
	if n := &w.need; w.o.Merge && len(n.misses) > 0 {
		n.misses = append(n.misses, n.hits...)
		n.hits = n.hits[:0]
	}
}

// mayStay is how many of the experts that a step uploads for a layer may stay in slots after use. A step of few rows may keep all. A prompt uses
// almost all experts of each layer once, so a layer may keep only its share of the slots, less its experts that are in slots already:
// often 0.
func (w *waves) mayStay(layer int) int {
	if w.o.Frame.StepRows.N <= shaders.FewRows {
		return w.o.Frame.Hyper.Experts.Count
	}
	return max(0, w.x.Share(layer)-w.x.Present(layer))
}

// waveSize is the maximum number of a layer's experts uploaded for one wave, see [weights.Experts.Wave]; with Options.Merge all.
func (w *waves) waveSize(layer int) int {
	if w.o.Merge {
		return w.o.Frame.Hyper.Experts.Count
	}
	return w.x.Wave(layer)
}

// prefetchNext starts to upload experts of the next layer with slots, before its router has run, if the step is a long prompt, which needs
// almost all of them. It does nothing if a layer is prefetched already, or if the next layer computes only the rows whose logits are needed.
func (w *waves) prefetchNext(l Layer) error {
	n, f := &w.need, w.o.Frame
	m := &f.Hyper.Experts
	if w.prefetched != noLayer || f.StepRows.N <= shaders.FewRows || f.StepRows.N*m.Used < plan.PrefetchPairs*m.Count {
		return nil
	}
	layer := nextSlottedLayer(w.o.Plan, l.Unit)
	if layer == noLayer || f.Batch.OnlyLogitRows && layer == f.Hyper.BlockCount-1 {
		return nil
	}
	w.prefetched, w.keepNext = layer, w.mayStay(layer)
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
	_, err := w.take(layer, n.misses, w.prefetch[1], plan.PrefetchWaves*w.waveSize(layer))
	return err
}

// take takes up to most experts from the front of ids into the empty batch b, starts to fetch the missing ones, and returns the ids not taken:
// those beyond most, or without a free slot.
func (w *waves) take(layer int, ids []int32, b *weights.Batch, most int) (untaken []int32, err error) {
	if len(ids) == 0 {
		return ids, nil
	}
	n, err := b.Take(w.o.Queue.Commands.Context(), layer, ids[:min(most, len(ids))])
	return ids[n:], err
}
