package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"leat/decompose/pack"
	"leat/engine/arch"
	"leat/engine/internal/exec"
	"leat/engine/internal/kv"
	"leat/engine/plan"
	"leat/vk"
)

// Rehearse times a few layers of the model at path, of each kind that it has, within o's budgets:
// so it learns, from the engine itself, how long a step of any plan for that model computes.
// It reads a few layers from disk and takes some seconds, more on a slow device or disk.
func Rehearse(ctx context.Context, path string, o Options) (*plan.Rehearsed, error) {
	o, err := o.validated()
	if err != nil {
		return nil, err
	}
	o.Pace, o.Progress, o.Routing = "off", nil, nil
	r := &rehearsal{Model: Model{o: o}}
	r.live()
	defer r.Close()
	for _, stage := range []func(context.Context, string) error{r.openFile, r.openDevice, r.makePlan} {
		if err := stage(ctx, path); err != nil {
			return nil, fmt.Errorf("rehearse %s: %w", path, err)
		}
	}
	if r.kernels, err = o.newKernels(r.dev); err == nil {
		err = r.all(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("rehearse %s: %w", path, err)
	}
	return &r.result, nil
}

// rehearsal is a model that is never built whole: it lends device and kernels to views of
// itself that have a few layers.
type rehearsal struct {
	Model
	result plan.Rehearsed
	base   int  // layers that every view begins with
	more   int  // layers that are told from them
	slots  bool // experts of views share slots, which hold all of them
}

// What a view should hold is more than a device's caches, and few enough layers to be read
// in a moment.
const (
	rehearseBase    = 128 << 20 // bytes of the layers that every view has
	rehearseMore    = 256 << 20 // and of those whose time is told
	rehearseLayers  = 8         // of either, at most
	rehearseClasses = 6         // of layers, the most frequent ones
	rehearseVocab   = 256       // rows of the head, but in the view that times the head
	rehearseContext = 4096      // positions
)

func (r *rehearsal) all(ctx context.Context) error {
	classes := plan.Classes(r.hyper, r.file)
	if len(classes) == 0 {
		return errors.New("the model has no layers")
	}
	classes = classes[:min(len(classes), rehearseClasses)]
	first := &classes[0]
	r.base, r.more = layersOf(rehearseBase, first.Bytes(), 1), layersOf(rehearseMore, first.Bytes(), 2)
	if r.dev.Physical.Type == vk.CPU {
		r.base, r.more = 1, 2 // it takes its time, and no cache holds what it decodes
	}
	for ; !r.fits(classes); r.base, r.more = (r.base+1)/2, (r.more+1)/2 {
		if r.base == 1 && r.more == 1 {
			return fmt.Errorf("two layers beside the cache and the scratch of the plan exceed %d bytes of VRAM", r.plan.DeviceBudget)
		}
	}
	r.result = plan.Rehearsed{Layers: map[string][]float64{}, Bytes: map[string]int64{}, Chunk: r.plan.Chunk}
	longer, err := r.time(ctx, r.layers(first, first), rehearseVocab, nil)
	if err != nil {
		return err
	}
	base, err := r.time(ctx, r.layers(first, nil), rehearseVocab, r.result.Steps)
	if err != nil {
		return err
	}
	r.learn(classes[0], base, longer)
	r.result.Rest = make([]float64, len(base))
	for i := range base {
		r.result.Rest[i] = max(0, base[i]-float64(r.base)*r.result.Layers[classes[0].Class][i])
	}
	for _, c := range classes[1:] {
		if longer, err = r.time(ctx, r.layers(first, &c), rehearseVocab, r.result.Steps); err != nil {
			return err
		}
		r.learn(c, base, longer)
	}
	head, err := r.time(ctx, r.layers(first, nil), r.hyper.VocabSize, r.result.Steps[:1])
	if err != nil {
		return err
	}
	r.result.Head = max(0, head[0]-base[0])
	return r.trip(ctx, classes)
}

func layersOf(total, each int64, least int) int {
	return int(min(max(int64(least), (total+each-1)/max(1, each)), rehearseLayers))
}

// learn tells a layer's time from what steps took without and with some more of them. It
// grows with the context, whatever the noise says.
func (r *rehearsal) learn(c plan.Layer, base, longer []float64) {
	steps := r.result.Steps
	seconds := make([]float64, len(base))
	for i := range seconds {
		seconds[i] = max(0, (longer[i]-base[i])/float64(r.more))
		for j := range i {
			if steps[j].Rows <= steps[i].Rows && steps[j].Context <= steps[i].Context {
				seconds[i] = max(seconds[i], seconds[j])
			}
		}
	}
	r.result.Layers[c.Class], r.result.Bytes[c.Class] = seconds, 0
	for _, t := range c.Tensors() {
		r.result.Bytes[c.Class] += t.Bytes
	}
}

// layers lists a view's: the base, and more of another class, or none.
func (r *rehearsal) layers(first, other *plan.Layer) (list []*plan.Layer) {
	for range r.base {
		list = append(list, first)
	}
	for n := 0; other != nil && n < r.more; n++ {
		list = append(list, other)
	}
	return list
}

// view is the model with other layers and a part of the vocabulary.
func (r *rehearsal) view(list []*plan.Layer, vocab int) (*pack.Model, *arch.Hyper, error) {
	var as []int
	var layers []pack.Unit
	for n, l := range list {
		as, layers = append(as, l.First.Layer), append(layers, l.As(n)...)
	}
	h := r.hyper.View(as)
	h.VocabSize = min(vocab, h.VocabSize)
	var before, after []pack.Unit
	for i := range r.file.Units {
		switch u := &r.file.Units[i]; u.Kind {
		case pack.Embed, pack.Head:
			part := u.Rows(0, int64(h.VocabSize))
			if u.Kind == pack.Embed {
				before = append(before, part)
			} else {
				after = append(after, part)
			}
		case pack.Global:
			before = append(before, *u)
		case pack.Norm:
			after = append(after, *u)
		}
	}
	m, err := r.file.View(slices.Concat(before, layers, after))
	return m, h, err
}

// planFor plans a view as the model is planned: with its rows to a step, in as long slices of weights, all in VRAM.
func (r *rehearsal) planFor(m *pack.Model, h *arch.Hyper) (*plan.Plan, error) {
	b := r.budget
	b.DeviceBytes, b.HostBytes, b.Sessions, b.RingBytes, b.Sweep = r.plan.DeviceBudget, 0, 1, 0, plan.Sweep{Halves: r.plan.Scratch.Weights}
	b.InPlace, b.Slots = r.plan.InPlace, r.slots
	b.Chunk, b.ContextLength = r.plan.Chunk, max(r.plan.Chunk, min(r.hyper.ContextLength, rehearseContext))
	p, err := plan.Make(h, m, b)
	if err == nil && (p.StreamedBytes > 0 || (p.Experts != nil) != r.slots) {
		err = fmt.Errorf("%d layers do not fit", h.BlockCount)
	}
	return p, err
}

func (r *rehearsal) fits(classes []plan.Layer) bool {
	for _, c := range classes {
		m, h, err := r.view(r.layers(&classes[0], &c), rehearseVocab)
		if err == nil {
			_, err = r.planFor(m, h)
		}
		if err != nil {
			return false
		}
	}
	return true
}

// time builds a view and returns how long each of steps takes; nil: as many as are worth
// it, which become the rehearsal's.
func (r *rehearsal) time(ctx context.Context, layers []*plan.Layer, vocab int, steps []plan.StepShape) (seconds []float64, err error) {
	file, h, err := r.view(layers, vocab)
	if err != nil {
		return nil, err
	}
	v := &Model{o: r.o, file: file, hyper: h, inst: r.inst, dev: r.dev, kernels: r.kernels, shared: r.shared}
	v.live()
	if v.plan, err = r.planFor(file, h); err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, v.dev.WaitIdle())
		v.inst, v.dev, v.kernels = nil, nil, nil // they are the rehearsal's
		err = errors.Join(err, v.Close())
	}()
	v.makeHeaps()
	if err = v.build(ctx, ""); err != nil {
		return nil, err
	}
	if err = v.Loaded(ctx); err != nil {
		return nil, err
	}
	seq, err := v.cache.NewSequence(v.plan.ContextLength)
	if err != nil {
		return nil, err
	}
	defer seq.Release()
	d := &dummy{exec: v.exec, seq: seq, vocab: int32(h.VocabSize)}
	if r.slots {
		if err := v.fillSlots(ctx, d); err != nil {
			return nil, err
		}
	}
	seconds, all, err := newStopwatch(r.dev.Physical.Type, d.step).time(ctx, v.plan, steps)
	if steps == nil {
		r.result.Steps = all
	}
	return seconds, err
}

// dummy is a session of which only the shape of steps matters.
type dummy struct {
	exec  *exec.Exec
	seq   *kv.Sequence
	vocab int32
	token int32 // the last one
	rows  []exec.Row
}

// step runs one step. The positions before its rows hold nothing: a kernel takes no notice. Its tokens are others than
// those of the step before, or a mixture would find their experts in the device's caches. One row is never the first of
// its context, whose commands are not submitted again.
func (d *dummy) step(ctx context.Context, step plan.StepShape) (time.Duration, error) {
	d.rows = d.rows[:0]
	first := step.Context - step.Rows
	if step.Rows == 1 {
		first = max(first, 1)
	}
	for i := range step.Rows {
		d.token = (d.token + 7) % d.vocab
		d.rows = append(d.rows, exec.Row{
			Seq: d.seq, Token: d.token, Position: first + i, Logits: i == step.Rows-1,
		})
	}
	begin := time.Now()
	_, err := d.exec.Step(ctx, d.rows, true)
	return time.Since(begin), err
}
