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

// memoryBytes is the memory that a case can use; the largest needs 40 MiB.
const memoryBytes = 64 << 20

// Runner runs cases on one device, one after another, in memory that they share.
type Runner struct {
	Seed uint64 // seed of the random data

	dev      *vk.Device        // the device
	kernels  *kernels.Kernels  // the kernels to test
	room     int64             // size of each of the three buffers
	up       *vk.Buffer        // host memory from which a case's memory is copied to the device
	arena    *vk.Buffer        // device memory in which cases run: inputs, outputs and guards
	down     *vk.Buffer        // host memory to which the arena is copied after a run
	pool     *vk.CommandPool   // allocates cb
	cb       *vk.CommandBuffer // commands of a run
	timeline *vk.Timeline      // signalled at the end of each run
	ticket   uint64            // timeline value of the last run
	image    image             // the host's copy of the arena before a run

	tamper func(*job, []byte) // for tests: changes the memory after a run, as a broken kernel would
}

// New makes a runner for a device and its kernels. seed is the seed of the random data.
func New(dev *vk.Device, k *kernels.Kernels, seed uint64) (*Runner, error) {
	return newRunner(dev, k, seed, memoryBytes)
}

// newRunner is New with room bytes of memory for a case.
func newRunner(dev *vk.Device, k *kernels.Kernels, seed uint64, room int64) (*Runner, error) {
	r := &Runner{Seed: seed, dev: dev, kernels: k, room: room}
	if err := r.open(); err != nil {
		r.Close()
		return nil, fmt.Errorf("self-test: %w", err)
	}
	r.image = image{base: r.arena.Address, bytes: make([]byte, room)}
	return r, nil
}

// open makes the runner's buffers, command buffer and timeline. After an error the caller closes r.
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

// Can reports whether the device can run a case. A device without cooperative matrices can run their cases: other kernels then compute them.
func (r *Runner) Can(c *Case) bool {
	name := c.Kernel
	if name == "flash_attn_join" { // its cases run flash_attn_split first
		name = "flash_attn_split_f16"
	}
	k, ok := shaders.Lookup(name)
	return !ok || k.Needs&shaders.CoopMatrix != 0 || r.kernels.CanRun(k)
}

// Run runs a case twice, and compares the first run with the wanted outputs and the second with the first. The error is a [*MismatchError] if they differ.
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

// submit uploads a case's memory, runs the ops that it records, and returns the memory after the run.
func (r *Runner) submit(ctx context.Context, j *job) ([]byte, error) {
	n := int64(j.used)
	copy(r.up.Mapped(), j.bytes[:n])
	if err := r.cb.Begin(); err != nil {
		return nil, err
	}
	r.cb.Copy(r.arena, 0, r.up, 0, n)
	r.cb.Barrier()
	rec := r.kernels.Recorder(r.cb)
	rec.Memory.Grids = kernels.Scratch{Address: j.grids, Bytes: shaders.GridBytes}
	if err := j.record(rec); err != nil {
		return nil, errors.Join(err, r.cb.End()) // a command buffer that is being recorded can't begin again
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
		if ctx.Err() != nil { // the memory may be freed only after the run has ended
			err = errors.Join(r.timeline.Wait(context.WithoutCancel(ctx), r.ticket), err)
		}
		return nil, err
	}
	return r.down.Mapped()[:n], nil
}
