package engine

import (
	"context"
	"time"

	"leat/engine/token"
	"leat/internal/budget"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/internal/step"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
)

// Setup is how a test loads a model: options, and hooks.
type Setup struct {
	Options
	hooks hooks
}

// LoadSetup is [Load] with a test's hooks.
func LoadSetup(ctx context.Context, path string, s Setup) (*Model, error) {
	return load(ctx, path, s.Options, s.hooks)
}

// RehearseSetup is [Rehearse] with a test's hooks.
func RehearseSetup(ctx context.Context, path string, s Setup) (*predict.Rehearsal, error) {
	return rehearse(ctx, path, s.Options, s.hooks)
}

// WithFault makes o's reads of weights fail where fault says so.
func WithFault(o Setup, fault file.Fault) Setup {
	o.hooks.fail.read = fault
	return o
}

// WithHeadroom makes o's model ask free, before every step, how much VRAM is left to it,
// and keep its resident weights in blocks of blockBytes.
func WithHeadroom(o Setup, free func() int64, blockBytes int64) Setup {
	o.hooks.headroom, o.Tuning.Layout.BlockBytes = free, blockBytes
	return o
}

// WithMachine has the model planned as on that machine.
func WithMachine(o Setup, on *budget.Machine) Setup {
	o.hooks.machine = on
	return o
}

// BudgetOf is what the model was planned for.
func BudgetOf(m *Model) plan.Budget { return m.prepared.budget }

// WithAhead has layers go ahead, however often they miss an expert, and on a CPU, too.
func WithAhead(o Setup) Setup {
	o.hooks.always = true
	return o
}

// WithPolling has the host poll for the end of a step, as for a GPU.
func WithPolling(o Setup) Setup {
	o.hooks.polls = true
	return o
}

// WithEveryRow has the last layer compute rows that nobody asks logits of, too.
func WithEveryRow(o Setup) Setup {
	o.hooks.everyRow = true
	return o
}

// WithHurry has a rehearsal time steps no oftener than it must.
func WithHurry(o Setup) Setup {
	o.hooks.hurried = true
	return o
}

// WithTogether has experts that are there run with those that come, as on a CPU, WithApart apart from them, as on a GPU, unless
// something was said.
func WithTogether(o Setup) Setup {
	o.hooks.waves = wavesTogether
	return o
}

func WithApart(o Setup) Setup {
	if o.hooks.waves == byDevice {
		o.hooks.waves = wavesApart
	}
	return o
}

// WithShared keeps o's weights in place in memory of a kind, whatever the budgets.
func WithShared(o Setup, kind mem.Shared) Setup {
	o.hooks.shared = kind
	return o
}

// WithoutClock has o's model run on a device whose clock can't be read, or which has no
// timestamps at all.
func WithoutClock(o Setup, noStamps bool) Setup {
	o.hooks.opened = func(d *vk.Device) {
		d.Features.CalibratedTimestamps = false
		for _, q := range append(d.Transfers, d.Compute) {
			if noStamps {
				q.TimestampBits = 0
			}
		}
	}
	return o
}

// WithDeviceFault makes o's calls of Vulkan fail where fault says so.
func WithDeviceFault(o Setup, fault vk.Fault) Setup {
	o.hooks.fail.call = fault
	return o
}

// WithLanes makes o upload on n lanes, though the device may have fewer queues.
func WithLanes(o Setup, n int) Setup {
	o.hooks.lanes = n
	return o
}

// Watched are the steps that a rehearsal runs on a kind of device, where each takes what once
// says.
func Watched(device vk.DeviceType, p *plan.Plan, once func(predict.StepShape) time.Duration) (steps []predict.StepShape, err error) {
	_, steps, err = Timed(device, p, once)
	return steps, err
}

// Timed is what a rehearsal on a kind of device says that its steps take, in seconds, where each takes what once says; and all
// that it ran.
func Timed(device vk.DeviceType, p *plan.Plan, once func(predict.StepShape) time.Duration) (took map[predict.StepShape]float64, steps []predict.StepShape, err error) {
	s := newStopwatch(device, func(_ context.Context, step predict.StepShape) (time.Duration, error) {
		steps = append(steps, step)
		return once(step), nil
	})
	seconds, shapes, err := s.time(context.Background(), p, nil)
	took = map[predict.StepShape]float64{}
	for i := 0; err == nil && i < len(shapes); i++ {
		took[shapes[i]] = seconds[0][i]
	}
	return took, steps, err
}

// Passed are the bytes that went through the rates of a model that has them.
func (m *Model) Passed() (link, disk, vram int64) {
	return m.runner.rates.link.Passed(), m.runner.rates.disk.Passed(), m.runner.rates.vram.Passed()
}

// WithKernels has change look at how o's kernels are made.
func WithKernels(o Setup, change func(*kernels.Options)) Setup {
	o.hooks.kernels = change
	return o
}

// LookAt has s's steps under ctx look at another context in its place.
func (s *Session) LookAt(ctx, at context.Context) {
	s.forget()
	s.until = until{done: ctx.Done(), ctx: at, stop: func() {}}
}

// ClockWidth is how far spans of m's device may be off by its clock.
func (m *Model) ClockWidth() time.Duration { return m.prepared.device.vk.Clock.Width() }

// Wake wakes a step that waits for weights.
func (m *Model) Wake() { m.runner.weights.Wake() }

// Asking is a row of a step: the next token of a session, and whether it wants its logits.
type Asking struct {
	Session *Session
	Token   token.ID
	Prompt  bool // it is of a prompt, else to decode
	Logits  bool
}

// Step runs rows as one step and returns the logits of those that ask.
func (m *Model) Step(ctx context.Context, rows []Asking) (logits []float32, err error) {
	var of []step.Row
	counts := map[*Session]int{}
	for _, r := range rows {
		counts[r.Session]++
		row := step.Row{Seq: r.Session.seq, Token: r.Token, Position: len(r.Session.ids), Cell: len(r.Session.ids), Parent: step.FromCache, Role: step.Decode, Logits: r.Logits}
		if r.Prompt {
			row.Role = step.Prompt
		}
		for i := range of {
			if of[i].Seq == row.Seq {
				row.Parent = i
			}
		}
		of = append(of, row)
		if err := r.Session.take([]token.ID{r.Token}); err != nil {
			return nil, err
		}
	}
	first := rows[0].Session
	err = m.runner.step(first.during(ctx), first.life, of, step.WantLogits, func(r step.Result) error {
		logits = append(logits, r.Logits...)
		for s, n := range counts {
			if err := s.seq.Append(n); err != nil {
				return err
			}
		}
		return nil
	})
	return logits, err
}
