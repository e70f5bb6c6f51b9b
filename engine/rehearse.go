package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"leat/decompose/pack"
	"leat/internal/kv"
	"leat/internal/predict"
	"leat/internal/step"
)

// Rehearse is for leat's own commands. It times a few layers of the model at path, of each kind that it has, within o's budgets:
// so it learns, from the engine itself, how long a step of any plan for that model computes.
// It reads a few layers from disk and takes some seconds, more on a slow device or disk.
func Rehearse(ctx context.Context, path string, o Options) (*predict.Rehearsal, error) {
	return rehearse(ctx, path, o, hooks{})
}

func rehearse(ctx context.Context, path string, o Options, h hooks) (_ *predict.Rehearsal, err error) {
	if o, err = o.validated(); err != nil {
		return nil, err
	}
	o.Pace, o.Progress, o.Tuning.Routing = "off", nil, nil
	r := &rehearsal{p: &prepared{o: o, hooks: h}}
	defer r.p.close()
	err = r.p.prepare(ctx, path, func(*pack.Model) error { return nil })
	if err == nil {
		err = r.p.device.makeKernels(&o, &h)
	}
	if err == nil {
		err = r.all(ctx)
	}
	if err != nil {
		return nil, public(fmt.Errorf("rehearse %s: %w", path, err))
	}
	return &r.result, nil
}

// rehearsal is a model that is never built whole: it lends device and kernels to views of
// itself that have a few layers.
type rehearsal struct {
	p      *prepared
	result predict.Rehearsal
	first  *predict.LayerClass // of the layers that every view begins with
	base   int                 // how many layers every view begins with
	more   int                 // layers that follow them in a view with another class, whose time is told
	room   int64               // VRAM for views
	took   map[view][]float64
}

// What a view should hold is more than a device's caches, and few enough layers to be read
// in a moment.
const (
	rehearseBase    = 128 << 20 // bytes of the layers that every view has
	rehearseMore    = 256 << 20 // and of those whose time is told
	rehearseCPU     = 16 << 20  // the same where a CPU computes: it takes its time, and no cache holds what it decodes
	rehearseLayers  = 8         // of either, at most
	rehearseClasses = 6         // of layers, the most frequent ones
	rehearseVocab   = 256       // rows of the head, but in the view that times the head
	rehearseContext = 4096      // positions
)

func (r *rehearsal) all(ctx context.Context) error {
	classes := predict.LayerClasses(r.p.hyper, r.p.file)
	if len(classes) == 0 {
		return errors.New("the model has no layers")
	}
	classes = classes[:min(len(classes), rehearseClasses)]
	r.first, r.took = &classes[0], map[view][]float64{}
	r.base, r.more = layersOf(rehearseBase, r.first.Bytes(), 1), layersOf(rehearseMore, r.first.Bytes(), 2)
	if r.onCPU() {
		r.base, r.more = 1, min(layersOf(rehearseCPU, r.first.Bytes(), 2), rehearseLayers/2)
	}
	if r.room = r.p.plan.DeviceBudget; r.onCPU() { // its VRAM is RAM, of which a view may take more than the model was asked to
		r.room = max(r.room, r.p.device.vk.Physical.FreeBytes())
	}
	for ; !r.fits(classes, false); r.base, r.more = (r.base+1)/2, (r.more+1)/2 {
		if r.base == 1 && r.more == 1 {
			return fmt.Errorf("two layers beside the cache and the scratch of the plan exceed %d bytes of VRAM", r.room)
		}
	}
	r.result = predict.Rehearsal{Layers: map[string][]float64{}, Bytes: map[string]int64{}, Chunk: r.p.plan.Chunk}
	for i := range classes {
		both, err := r.each(ctx, r.result.Steps, view{other: &classes[i]}, view{})
		if err != nil {
			return err
		}
		longer, base := both[0], both[1]
		if r.learn(classes[i], base, longer); i == 0 {
			r.result.Overhead = make([]float64, len(base))
			for n := range base {
				r.result.Overhead[n] = max(0, base[n]-float64(r.base)*r.result.Layers[classes[0].Class][n])
			}
		}
	}
	both, err := r.each(ctx, r.result.Steps[:1], view{whole: true}, view{})
	if err != nil {
		return err
	}
	r.result.Head = max(0, both[0][0]-both[1][0])
	if err := r.streams(ctx); err != nil {
		return err
	}
	return r.trip(ctx, classes)
}

func layersOf(total, each int64, least int) int {
	return int(min(max(int64(least), (total+each-1)/max(1, each)), rehearseLayers))
}

// learn tells a layer's time from what steps took without and with some more of them. It
// grows with the context, whatever the noise says.
func (r *rehearsal) learn(c predict.LayerClass, base, longer []float64) {
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

// dummy is a session of which only the shape of steps matters.
type dummy struct {
	stepper *step.Stepper
	seq     *kv.Sequence
	vocab   int32
	token   int32 // the last one
	same    bool  // all are that one: its experts are found again
	rows    []step.Row
}

// step runs one step. The positions before its rows hold nothing: a kernel takes no notice. Its tokens are others than
// those of the step before, or a mixture would find their experts in the device's caches. One row is never the first of
// its context, whose commands are not submitted again.
func (d *dummy) step(ctx context.Context, shape predict.StepShape) (time.Duration, error) {
	d.rows = d.rows[:0]
	first, role := shape.Context-shape.Rows, step.Prompt
	if shape.Rows == 1 {
		role = step.Decode
		first = max(first, 1)
	}
	for i := range shape.Rows {
		if !d.same {
			d.token = (d.token + 7) % d.vocab
		}
		row := step.NewRow(d.rows, d.seq, d.token, first+i, role)
		row.Logits = i == shape.Rows-1
		d.rows = append(d.rows, row)
	}
	want := step.WantArgmax
	if d.stepper.Hyper.Encoder {
		want = step.WantHidden
	}
	begin := time.Now()
	_, err := d.stepper.Step(ctx, d.rows, want)
	took := time.Since(begin)
	var garbage *step.NotFiniteError
	if errors.As(err, &garbage) { // as the positions before may be
		err = nil
	}
	return took, err
}
