package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Model is a loaded model on one device. Its methods may be called by several
// goroutines; steps of several sessions run one after another.
type Model struct {
	prepared prepared
	text     text
	runner   runner

	life context.Context // until Close
	end  context.CancelCauseFunc

	embedding chan struct{} // has an element while a call of Embed holds its texts' keys and values

	open   sync.RWMutex // held by Close, and by those who must not meet it
	closed bool
	left   Stats // as they were when it was closed
}

// Load opens the GGUF file (any shard) or the pack at path, plans residency and begins
// to upload the resident part: steps may run at once, and wait for what they need.
// [Model.Loaded] waits for it. Canceling ctx frees everything. The error is a
// [*BudgetError] when the budgets cannot hold the largest streamed unit, an
// [*UnsupportedError] or one that wraps gguf.ErrFormat when we cannot run the file, an
// [*OptionError] for an option out of range, and wraps [ErrNoDevice] without a usable Vulkan.
func Load(ctx context.Context, path string, o Options) (*Model, error) {
	return load(ctx, path, o, hooks{})
}

func load(ctx context.Context, path string, o Options, h hooks) (*Model, error) {
	o, err := o.validated()
	if err != nil {
		return nil, err
	}
	m := &Model{prepared: prepared{o: o, hooks: h}, embedding: make(chan struct{}, 1)}
	m.runner.p = &m.prepared
	m.life, m.end = context.WithCancelCause(context.Background())
	err = m.prepared.prepare(ctx, path, m.text.read)
	for _, note := range m.text.notes() {
		o.Logger.Warn(note, "model", path)
	}
	if err == nil {
		err = m.runner.build(ctx)
	}
	if err != nil {
		if closing := m.Close(); closing != nil && !errors.Is(closing, ErrDeviceLost) {
			o.Logger.Warn("not all was freed after a failed load", "error", closing)
		}
		return nil, public(named("load", path, err))
	}
	context.AfterFunc(m.life, m.runner.weights.Wake)
	return m, nil
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
		err = m.runner.weights.Loaded(both)
	}
	if err != nil {
		if both.Err() != nil {
			err = ended(both)
		}
		return public(fmt.Errorf("load %s: %w", m.prepared.file.Path, err))
	}
	return nil
}

// DeviceName is the device the model runs on.
func (m *Model) DeviceName() string { return m.prepared.device.vk.Physical.Name }

// Info is what a model's file says of it.
type Info struct {
	Architecture    string // as "qwen3moe"
	Layers          int
	ContextLength   int // tokens that it was trained to hold; [Plan] has what a session holds
	EmbeddingLength int // width of a token's vector
	VocabSize       int // ids, and so logits of a row
	Experts         int // of a layer that is a mixture; 0: none is
	ExpertsUsed     int // by each token

	Encoder bool    // the model generates nothing: [Model.Embed] is all that it is for
	Pooling Pooling // how its author makes a vector of a text, for [Model.Embed]; "": the file does not say
}

// Info says what kind of model it is.
func (m *Model) Info() Info {
	h := m.prepared.hyper
	return Info{h.Architecture, h.BlockCount, h.ContextLength, h.EmbeddingLength, h.VocabSize, h.Experts.Count, h.Experts.Used, h.Encoder, poolingNames[h.Pooling]}
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
	m.runner.mu.Lock()
	defer m.runner.mu.Unlock()
	m.open.Lock()
	defer m.open.Unlock()
	if m.closed {
		return nil
	}
	if m.runner.stepper != nil {
		m.left = m.stats()
	}
	m.closed = true
	return errors.Join(m.runner.close(), m.prepared.close())
}
