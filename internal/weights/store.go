package weights

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"leat/decompose/pack"
	"leat/internal/plan"
	"leat/internal/trace"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/limit"
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

	// Progress is told, by another goroutine, how many bytes are where they will be kept, in
	// VRAM or in the host tier, the last time with both the same. The total shrinks
	// where less RAM can be pinned than was planned.
	Progress func(doneBytes, totalBytes int64)
	Shared   mem.Shared      // of which memory is what a plan holds in place
	Queues   []*vk.Queue     // to upload on; nil: the device's transfer queues
	Fault    file.Fault      // for tests: fails reads
	Trace    *trace.Recorder // keeps what disk and link do; nil: nobody does

	Policy string // of the experts that share slots, see [expert.ByName]; "": the default

	LinkRate, DiskRate *limit.Rate // slow uploads and reads down; nil: as fast as they are
}

// Store holds a model's weights. One goroutine calls Begin, Acquire, Waits, Release
// and Replan.
type Store struct {
	o      Options
	up     *xfer.Uploader
	pool   *file.Pool // nil: nobody is at work
	files  []*file.File
	drives int          // that a file is striped over, at most
	blocks []*vk.Buffer // nil: given back
	rings  []*vk.Buffer
	units  []unit
	embd   embedding

	experts *Experts       // that share slots; nil: none
	crew    sync.WaitGroup // who fills their host tier

	items    chan item          // walker to feeder
	requests chan *file.Request // free ones
	pinned   chan hostBlock     // pinner to walker
	waited   xfer.Ticket        // what the step's queue has waited for
	serving  int                // walker: the step that it brings bytes for

	mu      sync.Mutex
	changed *sync.Cond
	ring    ring
	came    []arrival // units in the ring that were not acquired yet, oldest first
	held    Placed    // the streamed unit acquired and not yet released
	begun   []bool    // steps begun that the walker has not looked at: do they want the head?
	steps   int       // steps begun, all of them
	aborted int       // the last one that was aborted; what comes for it is dropped
	walked  bool      // the walker has nothing left to bring
	full    bool      // the feeder waits for room in the ring
	pins    []*vk.Buffer
	ended   [][2]atomic.Uint64 // of each unit, in even and odd steps: the device's time when its last copy ended
	err     error              // first failure, until Replan
	closing bool
	pausing bool // the goroutines are being stopped, to be started again
	cancel  context.CancelFunc
	work    sync.WaitGroup

	reading            time.Duration // of pools that were closed
	uploaded, fromDisk atomic.Int64
	taken              int         // walker: blocks of the host tier that were given to their units
	arrived, total     int64       // bytes of kept units: there, and all
	told               bool        // Progress has heard of the last one
	last               xfer.Ticket // of resident units
}

// unit is what the store knows of a unit of the plan.
type unit struct {
	*plan.Unit
	tier plan.Tier // the plan's, or Disk where less could be pinned than planned

	pieces []piece    // what is read at a time
	host   *vk.Buffer // walker: its block of the host tier, once that is pinned
	read   bool       // walker: it has been asked for, so it need not be again

	loaded bool        // resident: its upload is submitted; host: all of it is in its block
	ticket xfer.Ticket // of that upload
}

func (u *unit) kept() bool { return u.tier != plan.Disk && u.tier != plan.Cached }

// arrival is a streamed unit whose upload is submitted.
type arrival struct {
	unit    int
	step    int    // that it is for, counted from 1
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
	s.ended = make([][2]atomic.Uint64, len(o.Plan.Units))
	for i := range o.Plan.Units {
		u := &o.Plan.Units[i]
		s.units = append(s.units, unit{Unit: u, tier: u.Tier, pieces: pieces(u, o.Plan.Staging.SlotBytes, stripeOf(o.Model))})
	}
	err := s.allocate(ctx)
	if err == nil {
		err = s.newExperts(ctx)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	if err := s.openEmbedding(); err != nil {
		s.Close()
		return nil, err
	}
	s.count()
	s.start()
	if s.experts != nil {
		s.experts.start()
	}
	return s, nil
}

// Experts are those that share slots; nil: none do.
func (s *Store) Experts() *Experts { return s.experts }

// policy is the experts' policy.
func (s *Store) policy() string {
	if s.o.Policy == "" {
		return defaultPolicy
	}
	return s.o.Policy
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
		if err := f.Is(s.o.Model.Infos[i]...); err != nil {
			return err
		}
	}
	var err error
	if s.blocks, err = s.alloc(ctx, "weights", p.Blocks); err != nil {
		return err
	}
	if s.rings, err = s.alloc(ctx, "ring", p.Ring); err != nil {
		return err
	}
	s.ring.blocks = p.Ring
	o := xfer.Options{Slots: p.Staging.Slots, SlotBytes: p.Staging.SlotBytes, Queues: s.o.Queues, Clocked: s.o.Trace != nil, Done: s.copied}
	if p.InPlace {
		o.Slots, o.SlotBytes = 1, file.Align // nothing is uploaded
	}
	s.up, err = xfer.New(s.o.Device, s.o.Host, o)
	return err
}

// alloc makes buffers of the sizes, which the caller frees after a failure too.
func (s *Store) alloc(ctx context.Context, what string, sizes []int64) (list []*vk.Buffer, err error) {
	for i, n := range sizes {
		if err := ctx.Err(); err != nil {
			return list, err
		}
		name := fmt.Sprintf("%s block %d", what, i)
		var b *vk.Buffer
		if s.o.Plan.InPlace {
			b, err = s.o.VRAM.AllocShared(name, n, s.o.Shared)
		} else {
			b, err = s.o.VRAM.Alloc(name, n, vk.DeviceLocal)
		}
		if err != nil {
			return list, err
		}
		list = append(list, b)
	}
	return list, nil
}

// count sums up what is to be kept, and what is there of it.
func (s *Store) count() {
	s.arrived, s.total = 0, 0
	if s.experts != nil {
		s.arrived, s.total = s.experts.kept()
	}
	for i := range s.units {
		if u := &s.units[i]; u.kept() {
			s.total += u.Bytes
			if u.loaded {
				s.arrived += u.Bytes
			}
		}
	}
}

// progress is called under the lock when arrived or total changed.
func (s *Store) progress() {
	if s.o.Progress != nil && !s.told {
		s.told = s.arrived == s.total
		s.o.Progress(s.arrived, s.total)
	}
}

// fail remembers the first error and wakes whoever waits.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && !s.pausing { // what fails while all is stopped is tried again afterwards
		s.err = err
	}
	s.changed.Broadcast()
}

// errClosing ends the goroutines of a store that is closed.
var errClosing = errors.New("the weights are closed")

// crewWait is wait for the store's own goroutines, which a pause ends too.
func (s *Store) crewWait(met func() bool) error {
	ok := false
	if err := s.wait(func() bool { ok = met(); return ok || s.pausing }); err != nil || ok {
		return err
	}
	return errClosing
}

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

func (s *Store) free(list []*vk.Buffer) {
	for _, b := range list {
		if b != nil {
			s.o.VRAM.Free(b)
		}
	}
}

// Close stops the loading, waits for the device and frees everything; safe twice.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closing = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.stop()
	s.embd.close()
	var errs []error
	if s.experts != nil {
		s.experts.cancel()
		s.crew.Wait()
		errs = append(errs, s.experts.close())
	}
	if s.up != nil {
		errs = append(errs, s.up.Close())
		s.up = nil
	}
	s.free(s.blocks)
	s.free(s.rings)
	for _, b := range s.pins {
		if b != nil {
			s.o.Host.Free(b)
		}
	}
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	s.blocks, s.rings, s.pins, s.files = nil, nil, nil, nil
	return errors.Join(errs...)
}
