package selftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
)

// memoryBytes bounds what a case can use; the largest needs 40 MiB.
const memoryBytes = 64 << 20

// Runner runs cases on one device, one after another, in memory that they share.
type Runner struct {
	Seed uint64 // of the random data

	dev      *vk.Device
	kernels  *kernels.Kernels
	room     int64      // of memory
	up       *vk.Buffer // host
	arena    *vk.Buffer // device
	down     *vk.Buffer // host
	pool     *vk.CommandPool
	cb       *vk.CommandBuffer
	timeline *vk.Timeline
	ticket   uint64
	image    image

	tamper func(*job, []byte) // tests: what a broken kernel would have left
}

// New makes a runner for a device and its kernels. The seed makes the random data.
func New(dev *vk.Device, k *kernels.Kernels, seed uint64) (*Runner, error) {
	return newRunner(dev, k, seed, memoryBytes)
}

func newRunner(dev *vk.Device, k *kernels.Kernels, seed uint64, room int64) (*Runner, error) {
	r := &Runner{Seed: seed, dev: dev, kernels: k, room: room}
	if err := r.open(); err != nil {
		r.Close()
		return nil, fmt.Errorf("self-test: %w", err)
	}
	r.image = image{base: r.arena.Address, bytes: make([]byte, room)}
	return r, nil
}

func (r *Runner) open() (err error) {
	if r.up, err = r.dev.NewBuffer("self-test upload", r.room, vk.Upload); err != nil {
		return err
	}
	if r.arena, err = r.dev.NewBuffer("self-test arena", r.room, vk.DeviceLocal); err != nil {
		return err
	}
	if r.down, err = r.dev.NewBuffer("self-test readback", r.room, vk.Readback); err != nil {
		return err
	}
	if r.pool, err = r.dev.Compute.NewCommandPool(); err != nil {
		return err
	}
	if r.cb, err = r.pool.New(); err != nil {
		return err
	}
	r.timeline, err = r.dev.NewTimeline("self-test")
	return err
}

// Close frees the runner's memory; it may be called twice.
func (r *Runner) Close() {
	if r.pool != nil {
		r.pool.Close()
	}
	if r.timeline != nil {
		r.timeline.Close()
	}
	for _, b := range []*vk.Buffer{r.up, r.arena, r.down} {
		if b != nil {
			b.Close()
		}
	}
}

// Can says whether the device can run a case. Where it has no cooperative matrices, what is meant for them is computed
// in float32.
func (r *Runner) Can(c *Case) bool {
	name := c.Kernel
	if name == "flash_attn_join" { // its cases join what that one made
		name = "flash_attn_split_f16"
	}
	k, ok := shaders.Lookup(name)
	return !ok || k.Needs&shaders.CoopMatrix != 0 || r.kernels.CanRun(k)
}

// Run runs a case twice and compares. The error is a [*MismatchError] if the device got it wrong.
func (r *Runner) Run(ctx context.Context, c *Case) (Result, error) {
	start := time.Now()
	r.image.reset()
	j := &job{image: &r.image, rng: c.seeded(r.Seed)}
	if err := c.build(j); err != nil {
		return Result{}, fmt.Errorf("self-test %s: %w", c, err)
	}
	if j.full != nil {
		return Result{}, fmt.Errorf("self-test %s: %w", c, j.full)
	}
	first, err := r.submit(ctx, j)
	if err != nil {
		return Result{}, fmt.Errorf("self-test %s: %w", c, err)
	}
	got := append([]byte(nil), first...)
	if r.tamper != nil {
		r.tamper(j, got)
	}
	nmse, err := j.verify(c, got)
	if err != nil {
		return Result{}, err
	}
	again, err := r.submit(ctx, j)
	if err != nil {
		return Result{}, fmt.Errorf("self-test %s: %w", c, err)
	}
	if off := differ(got, again); off >= 0 {
		return Result{}, &MismatchError{c.String(), fmt.Sprintf("the word at byte %d of a second run", off),
			fmt.Sprintf("%#08x", word(again, off)), fmt.Sprintf("%#08x, as in the first", word(got, off))}
	}
	return Result{Case: c, NMSE: nmse, Took: time.Since(start)}, nil
}

// submit uploads the case's memory, runs what it records and returns the memory after.
func (r *Runner) submit(ctx context.Context, j *job) ([]byte, error) {
	n := int64(j.used)
	copy(r.up.Mapped(), j.bytes[:n])
	if err := r.cb.Begin(); err != nil {
		return nil, err
	}
	r.cb.Copy(r.arena, 0, r.up, 0, n)
	r.cb.Barrier()
	if err := j.record(r.kernels.Recorder(r.cb)); err != nil {
		return nil, errors.Join(err, r.cb.End()) // or it could not begin again
	}
	r.cb.Barrier()
	r.cb.Copy(r.down, 0, r.arena, 0, n)
	r.cb.HostBarrier()
	if err := r.cb.End(); err != nil {
		return nil, err
	}
	r.ticket++
	err := r.dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{r.cb},
		Signals: []vk.Point{{Timeline: r.timeline, Value: r.ticket}}})
	if err != nil {
		return nil, err
	}
	if err := r.timeline.Wait(ctx, r.ticket); err != nil {
		if ctx.Err() != nil { // what it uses may be freed only when it is over
			err = errors.Join(r.timeline.Wait(context.WithoutCancel(ctx), r.ticket), err)
		}
		return nil, err
	}
	return r.down.Mapped()[:n], nil
}
