package conform

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

// Suite runs cases on one device, one after another, in memory that they share.
type Suite struct {
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

var begun = func(*Case) {} // tests: told of every case that runs

// New makes a suite for a device and its kernels. The seed makes the random data.
func New(dev *vk.Device, k *kernels.Kernels, seed uint64) (*Suite, error) {
	return suiteOf(dev, k, seed, memoryBytes)
}

func suiteOf(dev *vk.Device, k *kernels.Kernels, seed uint64, room int64) (*Suite, error) {
	s := &Suite{Seed: seed, dev: dev, kernels: k, room: room}
	if err := s.open(); err != nil {
		s.Close()
		return nil, fmt.Errorf("conform: %w", err)
	}
	s.image = image{base: s.arena.Address, bytes: make([]byte, room)}
	return s, nil
}

func (s *Suite) open() (err error) {
	if s.up, err = s.dev.NewBuffer("conform upload", s.room, vk.Upload); err != nil {
		return err
	}
	if s.arena, err = s.dev.NewBuffer("conform arena", s.room, vk.DeviceLocal); err != nil {
		return err
	}
	if s.down, err = s.dev.NewBuffer("conform readback", s.room, vk.Readback); err != nil {
		return err
	}
	if s.pool, err = s.dev.Compute.NewCommandPool(); err != nil {
		return err
	}
	if s.cb, err = s.pool.New(); err != nil {
		return err
	}
	s.timeline, err = s.dev.NewTimeline("conform")
	return err
}

// Close frees the suite's memory; it may be called twice.
func (s *Suite) Close() {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.timeline != nil {
		s.timeline.Close()
	}
	for _, b := range []*vk.Buffer{s.up, s.arena, s.down} {
		if b != nil {
			b.Close()
		}
	}
}

// Can says whether the device can run a case. Where it has no cooperative matrices, what is meant for them is computed
// in float32.
func (s *Suite) Can(c *Case) bool {
	name := c.Kernel
	if name == "flash_attn_join" { // its cases join what that one made
		name = "flash_attn_split_f16"
	}
	k, ok := shaders.Lookup(name)
	return !ok || k.Needs&shaders.CoopMatrix != 0 || s.kernels.Can(k)
}

// Run runs a case twice and compares. The error is a [*MismatchError] if the device got it wrong.
func (s *Suite) Run(ctx context.Context, c *Case) (Result, error) {
	start := time.Now()
	begun(c)
	s.image.reset()
	j := &job{image: &s.image, rng: c.seeded(s.Seed)}
	if err := c.build(j); err != nil {
		return Result{}, fmt.Errorf("conform %s: %w", c, err)
	}
	if j.full != nil {
		return Result{}, fmt.Errorf("conform %s: %w", c, j.full)
	}
	first, err := s.submit(ctx, j)
	if err != nil {
		return Result{}, fmt.Errorf("conform %s: %w", c, err)
	}
	got := append([]byte(nil), first...)
	if s.tamper != nil {
		s.tamper(j, got)
	}
	nmse, err := j.verify(c, got)
	if err != nil {
		return Result{}, err
	}
	again, err := s.submit(ctx, j)
	if err != nil {
		return Result{}, fmt.Errorf("conform %s: %w", c, err)
	}
	if off := differ(got, again); off >= 0 {
		return Result{}, &MismatchError{c.String(), fmt.Sprintf("the word at byte %d of a second run", off),
			fmt.Sprintf("%#08x", word(again, off)), fmt.Sprintf("%#08x, as in the first", word(got, off))}
	}
	return Result{Case: c, NMSE: nmse, Took: time.Since(start)}, nil
}

// submit uploads the case's memory, runs what it records and returns the memory after.
func (s *Suite) submit(ctx context.Context, j *job) ([]byte, error) {
	n := int64(j.used)
	copy(s.up.Mapped(), j.bytes[:n])
	if err := s.cb.Begin(); err != nil {
		return nil, err
	}
	s.cb.Copy(s.arena, 0, s.up, 0, n)
	s.cb.Barrier()
	if err := j.record(s.kernels.Recorder(s.cb)); err != nil {
		return nil, errors.Join(err, s.cb.End()) // or it could not begin again
	}
	s.cb.Barrier()
	s.cb.Copy(s.down, 0, s.arena, 0, n)
	s.cb.HostBarrier()
	if err := s.cb.End(); err != nil {
		return nil, err
	}
	s.ticket++
	err := s.dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{s.cb},
		Signals: []vk.Point{{Timeline: s.timeline, Value: s.ticket}}})
	if err != nil {
		return nil, err
	}
	if err := s.timeline.Wait(ctx, s.ticket); err != nil {
		if ctx.Err() != nil { // what it uses may be freed only when it is over
			err = errors.Join(s.timeline.Wait(context.WithoutCancel(ctx), s.ticket), err)
		}
		return nil, err
	}
	return s.down.Mapped()[:n], nil
}
