package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"leat/decompose/pack"
	"leat/engine/chat"
	"leat/engine/token"
	"leat/internal/arch"
	"leat/internal/expertcache"
	"leat/internal/kernels"
	"leat/internal/kv"
	"leat/internal/pace"
	"leat/internal/plan"
	"leat/internal/step"
	"leat/internal/weights"
	"leat/shaders"
	"leat/vk"
	"leat/vk/limit"
	"leat/vk/mem"
)

// Model is a loaded model on one device. Its methods may be called by several
// goroutines; steps of several sessions run one after another.
type Model struct {
	o       Options
	file    *pack.Model
	hyper   *arch.Hyper
	tok     *token.Tokenizer
	tokErr  error                     // why there is no tok
	budget  plan.Budget               // that the plan was made for
	plan    *plan.Plan                // made at the beginning; sizes of context and step never change
	now     atomic.Pointer[plan.Plan] // what holds just now: fewer units may be resident
	adapter adapter
	shrinks shrinks
	inst    *vk.Instance
	dev     *vk.Device
	vram    *mem.Heap
	host    *mem.Heap
	shared  mem.Shared // memory that weights are in place in
	kernels *kernels.Kernels
	lent    bool // inst, dev and kernels are others', too
	compute *vk.Timeline
	weights *weights.Store
	cache   *kv.Cache
	stepper *step.Stepper
	pacer   *pace.Pacer // nil: nothing is paced

	routing *expertcache.Writer // nil: nobody wants to know

	rates struct{ link, disk, vram *limit.Rate } // nil: as fast as they are

	chatOnce sync.Once
	chat     *chat.Template
	chatErr  error

	life context.Context // until Close
	end  context.CancelCauseFunc
	wake func() // lets a step that waits for weights look at its context

	mu      sync.Mutex // held during a step
	dead    error      // the device is lost: no step can run any more
	pending *plan.Plan // that gives VRAM back, and could not be put in force

	open   sync.RWMutex // held by Close, and by those who must not meet it
	closed bool
	left   Stats // once it is closed
}

// Load opens the GGUF file (any shard) or the pack at path, plans residency and begins
// to upload the resident part: steps may run at once, and wait for what they need.
// [Model.Loaded] waits for it. Canceling ctx frees everything. The error is a
// [*BudgetError] when the budgets cannot hold the largest streamed unit, a
// [*UnsupportedError] or one that wraps gguf.ErrFormat when we cannot run the file, an
// [*OptionError] for an option out of range, and wraps [ErrNoDevice] without a usable Vulkan.
func Load(ctx context.Context, path string, o Options) (*Model, error) {
	o, err := o.validated()
	if err != nil {
		return nil, err
	}
	m := &Model{o: o}
	m.live()
	m.rates.link, m.rates.disk, m.rates.vram = limit.New(o.LinkBytesPerSec), limit.New(o.DiskBytesPerSec), limit.New(o.VRAMBytesPerSec)
	for _, stage := range []func(context.Context, string) error{m.openFile, m.openDevice, m.makePlan, m.build} {
		if err := stage(ctx, path); err != nil {
			if closing := m.Close(); closing != nil && !errors.Is(closing, ErrDeviceLost) {
				m.o.Logger.Warn("not all was freed after a failed load", "error", closing)
			}
			if strings.HasPrefix(err.Error(), path+": ") { // it names the file by itself
				return nil, fmt.Errorf("load %w", err)
			}
			return nil, fmt.Errorf("load %s: %w", path, err)
		}
	}
	return m, nil
}

func (m *Model) openFile(_ context.Context, path string) (err error) {
	if m.file, err = pack.Open(path); err != nil {
		return err
	}
	if m.hyper, m.tok, m.tokErr, err = Examine(m.file); err != nil {
		return err
	}
	for _, note := range m.hyper.Notes {
		m.o.Logger.Warn(note, "model", path)
	}
	return shaders.CheckKV(m.o.kv(), m.hyper.KeyLength, m.hyper.ValueLength)
}

func (m *Model) openDevice(context.Context, string) (err error) {
	if m.o.lend != nil {
		if l, err := m.o.lend(&m.o); err != nil || l != nil {
			if l != nil {
				m.inst, m.dev, m.kernels, m.lent = l.inst, l.dev, l.kernels, true
			}
			return err
		}
	}
	if m.inst, err = vk.Open(vk.InstanceOptions{LoaderPath: m.o.VulkanLoader, Validate: m.o.Validate, Logger: m.o.Logger}); err != nil {
		return err
	}
	phys, err := m.inst.Pick(m.o.Device)
	if err != nil {
		return err
	}
	m.dev, err = m.inst.NewDevice(phys, vk.DeviceOptions{OneQueue: m.o.OneQueue, Disable: m.o.Disable, Enable: m.o.Enable, Fault: m.o.device})
	if err == nil && m.o.opened != nil {
		m.o.opened(m.dev)
	}
	return err
}

func (m *Model) makePlan(ctx context.Context, _ string) (err error) {
	on, err := m.o.examine(m.dev.Physical, func() (mem.Shared, error) { return mem.ProbeShared(ctx, m.dev) })
	if err != nil {
		return err
	}
	b, err := m.o.Budget(&on, m.hyper, m.file)
	if err != nil {
		return err
	}
	m.budget = b
	if m.plan, err = plan.Make(m.hyper, m.file, b); err != nil {
		return err
	}
	if m.plan.InPlace {
		m.shared = on.Shared
	}
	if m.plan.ContextLength > m.hyper.ContextLength {
		m.o.Logger.Warn("context is longer than the model was trained for", "context", m.plan.ContextLength, "trained", m.hyper.ContextLength)
	}
	m.makeHeaps()
	return nil
}

// makeHeaps makes the plan the one in force.
func (m *Model) makeHeaps() {
	m.now.Store(m.plan)
	m.vram = mem.NewHeap(m.dev, "VRAM", m.plan.DeviceBudget)
	m.host = mem.NewHeap(m.dev, "host", 0)
}

// build makes everything that lives on the device, in order of dependence.
func (m *Model) build(ctx context.Context, _ string) (err error) {
	if m.kernels == nil { // a rehearsal lends them, or a test
		if m.kernels, err = m.o.newKernels(m.dev); err != nil {
			return err
		}
	}
	if m.compute, err = m.dev.NewTimeline("compute"); err != nil {
		return err
	}
	if m.cache, err = kv.New(m.vram, m.plan.KV); err != nil {
		return err
	}
	m.weights, err = weights.New(ctx, weights.Options{
		Device: m.dev, VRAM: m.vram, Host: m.host, Model: m.file, Plan: m.plan, Compute: m.compute, Logger: m.o.Logger, Progress: m.o.Progress,
		Queues: m.lanes(), Fault: m.o.fault, Trace: m.o.Trace, Shared: m.shared, Policy: m.o.ExpertPolicy,
		LinkRate: m.rates.link, DiskRate: m.rates.disk,
	})
	if err != nil {
		return err
	}
	m.wake = m.weights.Wake
	context.AfterFunc(m.life, m.wake)
	m.pacer = m.newPacer()
	m.adapter = m.newAdapter()
	routed, err := m.newRouting()
	if err != nil {
		return err
	}
	m.stepper, err = step.New(step.Options{
		Device: m.dev, Kernels: m.kernels, VRAM: m.vram, Host: m.host, Model: m.file, Hyper: m.hyper, Plan: m.plan,
		Weights: m.weights, Compute: m.compute, KVType: m.o.kv(), Logger: m.o.Logger, MaxSubmit: m.o.MaxSubmit,
		Pacer: m.pacer, Ran: m.adapter.ran(), Trace: m.o.Trace, Ops: m.o.Ops, ReadRate: m.rates.vram,
		Routed: routed, EveryRow: m.o.everyRow,
		ConditionalBelow: m.aheadBelow(), MergeExperts: m.together(), Listen: m.o.listens || m.dev.Physical.Type != vk.CPU,
	})
	return err
}

// Loaded waits until all weights that VRAM and RAM are to keep are there. Where a step has
// begun before, it waits for what that step brings.
func (m *Model) Loaded(ctx context.Context) error {
	m.open.RLock()
	defer m.open.RUnlock()
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.life, func() { cancel(errModelClosed) })()
	err := context.Cause(m.life)
	if err == nil {
		err = m.weights.Loaded(both)
	}
	if err != nil {
		if both.Err() != nil {
			err = ended(both)
		}
		return fmt.Errorf("load %s: %w", m.file.Path, err)
	}
	return nil
}

// lanes are the queues to upload on: nil, the device's own choice, outside tests.
func (m *Model) lanes() (queues []*vk.Queue) {
	for i := range m.o.queues {
		queues = append(queues, m.dev.Transfers[i%len(m.dev.Transfers)])
	}
	return queues
}

// Plan says where each unit lives just now and what everything takes.
func (m *Model) Plan() Plan { return *m.now.Load() }

// Hyper returns the model's hyperparameters.
func (m *Model) Hyper() arch.Hyper { return *m.hyper }

// Tokenizer turns text into ids; nil when the file's tokenizer is not supported.
func (m *Model) Tokenizer() *token.Tokenizer { return m.tok }

// TokenizerError says why Tokenizer is nil; it is nil where there is one.
func (m *Model) TokenizerError() error { return m.tokErr }

// Encode turns text into ids, shape (T); text never makes a control token. With
// addSpecial the file's BOS/EOS rules apply. It is nil where [Model.Tokenizer] is.
func (m *Model) Encode(text string, addSpecial bool) []token.ID {
	if m.tok == nil {
		return nil
	}
	return m.tok.Encode(text, addSpecial, false)
}

// DeviceName is the device the model runs on.
func (m *Model) DeviceName() string { return m.dev.Physical.Name }

// Traffic returns the bytes of weights that were uploaded and read from disk so far,
// and whether the disk is read past the page cache.
func (m *Model) Traffic() (uploaded, fromDisk int64, direct bool) {
	m.open.RLock()
	defer m.open.RUnlock()
	uploaded, fromDisk = m.weights.Traffic()
	return uploaded, fromDisk, m.weights.Direct()
}

// HostMemory returns the bytes of pinned RAM in use.
func (m *Model) HostMemory() int64 { return m.host.Used() }

// Memory returns the bytes of VRAM in use and the most that was, by our accounting.
func (m *Model) Memory() (used, peak int64) { return m.vram.Used(), m.vram.Peak() }

// ValidationMessages counts the warnings and errors of Vulkan's validation layers.
func (m *Model) ValidationMessages() int { return m.inst.Messages() }

// live makes the context that ends with the model.
func (m *Model) live() {
	m.life, m.end = context.WithCancelCause(context.Background())
}

// step runs one step for a session that lives as long as life. ctx is of [Session.during]. Only a lost device ends the model.
func (m *Model) step(ctx, life context.Context, rows []step.Row, greedy bool, use func(step.Result) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead != nil {
		return fmt.Errorf("the model can run no more steps: %w", m.dead)
	}
	if life.Err() != nil {
		return context.Cause(life)
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	res, err := m.tryStep(ctx, rows, greedy)
	if errors.Is(err, step.ErrStopped) {
		return fmt.Errorf("%w: %w", step.ErrStopped, ended(ctx))
	}
	if err != nil {
		if errors.Is(err, ErrDeviceLost) {
			m.dead = err
		}
		return err
	}
	m.kernels.Keep()
	return use(res)
}

// tryStep runs one step, with weights that take as much VRAM as there is for them, and are read again where that failed before.
func (m *Model) tryStep(ctx context.Context, rows []step.Row, greedy bool) (step.Result, error) {
	if err := m.adapt(ctx); err != nil {
		return step.Result{}, err
	}
	if err := m.weights.Recover(ctx); err != nil {
		return step.Result{}, err
	}
	return m.stepper.Step(ctx, rows, greedy)
}

// ended is why a context of [Session.during] has.
func ended(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrClosed) {
		return err
	}
	return ctx.Err()
}

// Close stops a step that runs, waits for the device and frees all; safe to call twice, and beside any other call.
// Afterwards what would need the device gives [ErrClosed], and what is known of the model stays known.
func (m *Model) Close() error {
	m.end(errModelClosed)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open.Lock()
	defer m.open.Unlock()
	if m.closed {
		return nil
	}
	if m.stepper != nil {
		m.left = m.stats()
	}
	m.closed = true
	var errs []error
	if m.routing != nil {
		errs = append(errs, m.routing.Flush())
	}
	if m.dev != nil {
		errs = append(errs, m.dev.WaitIdle())
	}
	if m.weights != nil {
		errs = append(errs, m.weights.Close())
	}
	if m.stepper != nil {
		m.stepper.Close()
	}
	if m.pacer != nil {
		errs = append(errs, m.pacer.Close())
	}
	if m.cache != nil {
		m.cache.Close()
	}
	if m.compute != nil {
		m.compute.Close()
	}
	if m.kernels != nil && !m.lent {
		m.kernels.Close()
	}
	for _, h := range []*mem.Heap{m.vram, m.host} {
		if h != nil {
			h.Close()
		}
	}
	if m.dev != nil && !m.lent {
		errs = append(errs, m.dev.Close())
	}
	if m.inst != nil && !m.lent {
		errs = append(errs, m.inst.Close())
	}
	if m.file != nil {
		errs = append(errs, m.file.Close())
	}
	return errors.Join(errs...)
}
