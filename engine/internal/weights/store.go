package weights

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"leat/decompose/pack"
	"leat/engine/plan"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// Options are what a Store is built from. All fields are needed down to Compute.
type Options struct {
	Device  *vk.Device
	VRAM    *mem.Heap
	Host    *mem.Heap
	Model   *pack.Model
	Plan    *plan.Plan
	Logger  *slog.Logger
	Compute *vk.Timeline // signalled by the steps that read the weights

	// Progress is told, by another goroutine, how many bytes have been uploaded of the
	// resident ones, the last time with both the same.
	Progress func(doneBytes, totalBytes int64)
	Queues   []*vk.Queue // to upload on; nil: the device's transfer queues
	Fault    file.Fault  // for tests: fails reads
}

// Store holds a model's weights. One goroutine calls Begin, Acquire, Waits and Release.
type Store struct {
	o      Options
	up     *xfer.Uploader
	pool   *file.Pool
	files  []*file.File
	drives int // that a file is striped over, at most
	blocks []*vk.Buffer
	rings  []*vk.Buffer
	units  []unit

	items    chan item          // walker to feeder
	requests chan *file.Request // free ones
	pinned   chan hostBlock     // pinner to walker
	waited   xfer.Ticket        // what the step's queue has waited for

	mu      sync.Mutex
	changed *sync.Cond
	ring    ring
	came    []arrival // units in the ring that were not acquired yet, oldest first
	held    Placed    // the streamed unit acquired and not yet released
	step    uint64    // steps begun
	aborted uint64    // the last one that was aborted; what comes for it is dropped
	begun   []bool    // steps begun that the walker has not looked at: do they want the head?
	walked  bool      // the walker has nothing left to bring
	full    bool      // the feeder waits for room in the ring
	pins    []*vk.Buffer
	err     error // first failure; sticky
	closing bool
	cancel  context.CancelFunc
	work    sync.WaitGroup

	uploaded, fromDisk atomic.Int64
	arrived, total     int64       // bytes of resident units: uploaded, and all
	last               xfer.Ticket // of resident units
}

// unit is what the store knows of a unit of the plan.
type unit struct {
	*plan.Unit
	tier plan.Tier // the plan's, or Disk where less could be pinned than planned

	pieces []piece    // what is read at a time
	host   *vk.Buffer // walker: its block of the host tier, once that is pinned
	read   bool       // walker: it has been asked for, so it need not be again

	loaded bool        // resident: its upload is submitted
	ticket xfer.Ticket // of that
}

// arrival is a streamed unit whose upload is submitted.
type arrival struct {
	unit    int
	step    uint64 // that it is for, counted from 1
	after   uint64 // compute value that its upload waits for
	address uint64
	ticket  xfer.Ticket
}

// Placed is where a unit's bytes are once the waits of its ticket are over.
type Placed struct {
	Address  uint64
	Streamed bool   // it must be released
	After    uint64 // compute value that the upload waits for: earlier the bytes can't come
	ticket   xfer.Ticket
}

// New allocates blocks, ring and staging and begins to load. Canceling ctx ends it.
func New(ctx context.Context, o Options) (*Store, error) {
	s := &Store{o: o}
	s.changed = sync.NewCond(&s.mu)
	for i := range o.Plan.Units {
		u := &o.Plan.Units[i]
		s.units = append(s.units, unit{Unit: u, tier: u.Tier, pieces: pieces(u, o.Plan.Staging.SlotBytes, stripeOf(o.Model))})
		if u.Tier == plan.VRAM {
			s.total += u.Bytes
		}
	}
	if err := s.allocate(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.start()
	return s, nil
}

func (s *Store) allocate(ctx context.Context) error {
	p := s.o.Plan
	for i, path := range s.o.Model.Files {
		paths := []string{path}
		if i < len(s.o.Model.Parts) {
			paths = s.o.Model.Parts[i]
		}
		s.drives = max(s.drives, len(paths))
		f, err := file.OpenStriped(paths, stripeOf(s.o.Model))
		if err != nil {
			return err
		}
		s.files = append(s.files, f)
	}
	alloc := func(what string, sizes []int64) (list []*vk.Buffer, err error) {
		for i, n := range sizes {
			if err := ctx.Err(); err != nil {
				return list, err
			}
			b, err := s.o.VRAM.Alloc(fmt.Sprintf("%s block %d", what, i), n, vk.DeviceLocal)
			if err != nil {
				return list, err
			}
			list = append(list, b)
		}
		return list, nil
	}
	var err error
	if s.blocks, err = alloc("weights", p.Blocks); err != nil {
		return err
	}
	if s.rings, err = alloc("ring", p.Ring); err != nil {
		return err
	}
	s.ring.blocks = p.Ring
	s.up, err = xfer.New(s.o.Device, s.o.Host, xfer.Options{Slots: p.Staging.Slots, SlotBytes: p.Staging.SlotBytes, Queues: s.o.Queues})
	return err
}

func (s *Store) start() {
	const spare = 8 // reads of the host tier, which take no slot
	n := s.o.Plan.Staging.Slots + spare
	s.items, s.requests, s.pinned = make(chan item, 2*n), make(chan *file.Request, n), make(chan hostBlock)
	for range n {
		s.requests <- file.NewRequest()
	}
	s.pool = file.NewPool(min(plan.ReadDepth*s.drives, s.o.Plan.Staging.Slots), s.o.Fault)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, do := range []func(context.Context) error{s.pin, s.walk, s.feed} {
		s.work.Go(func() {
			if err := do(ctx); err != nil {
				s.fail(err)
				cancel()
			}
		})
	}
}

// fail remembers the first error and wakes whoever waits.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.changed.Broadcast()
}

// errClosing ends the goroutines of a store that is closed.
var errClosing = errors.New("the weights are closed")

// wait waits for the condition under the lock until the store fails or closes.
func (s *Store) wait(met func() bool) error {
	for !s.closing {
		if met() {
			return nil
		}
		if s.err != nil {
			return s.err
		}
		s.changed.Wait()
	}
	return errClosing
}

// waitOr is wait that ends with ctx too.
func (s *Store) waitOr(ctx context.Context, met func() bool) error {
	err := s.wait(func() bool { return met() || ctx.Err() != nil })
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// Traffic returns the bytes uploaded and the bytes read from disk so far.
func (s *Store) Traffic() (uploaded, fromDisk int64) {
	return s.uploaded.Load(), s.fromDisk.Load()
}

// Direct reports whether the files are read past the page cache.
func (s *Store) Direct() bool {
	for _, f := range s.files {
		if !f.Direct() {
			return false
		}
	}
	return true
}

// Close stops the loading, waits for the device and frees everything; safe twice.
func (s *Store) Close() error {
	if s.cancel != nil {
		s.mu.Lock()
		s.closing = true
		s.changed.Broadcast()
		s.mu.Unlock()
		s.cancel()
		s.work.Wait()
		s.cancel = nil
	}
	if s.pool != nil {
		s.pool.Close() // before the memory that it reads into goes
	}
	var errs []error
	if s.up != nil {
		errs = append(errs, s.up.Close())
		s.up = nil
	}
	for _, b := range append(s.blocks, s.rings...) {
		s.o.VRAM.Free(b)
	}
	for _, b := range s.pins {
		s.o.Host.Free(b)
	}
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	s.blocks, s.rings, s.pins, s.files = nil, nil, nil, nil
	return errors.Join(errs...)
}
