package weights

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"leat/decompose/pack"
	"leat/internal/plan"
	"leat/internal/trace"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/limit"
	"leat/vk/mem"
)

// Options are what a Store is built from. The fields down to Compute are required.
type Options struct {
	Device  *vk.Device   // reads the weights
	VRAM    *mem.Heap    // memory for resident units, the ring and slots
	Host    *mem.Heap    // pinned memory, for staging and host copies
	Model   *pack.Model  // files and tensors
	Plan    *plan.Plan   // where each unit and expert is kept
	Logger  *slog.Logger // gets warnings, where less is kept in host memory than planned
	Compute *vk.Timeline // signalled by the steps that read the weights

	// Progress is called by other goroutines with how many of the bytes that are kept in VRAM or host memory have arrived there, the last time with
	// both the same. The total shrinks if less host memory can be pinned than was planned.
	Progress func(doneBytes, totalBytes int64)
	Shared   mem.Shared      // kind of memory to allocate if Plan.InPlace is set: device and host share it
	Queues   []*vk.Queue     // queues for uploads; nil: the device's transfer queues
	Fault    file.Fault      // a test's hook that fails reads
	Trace    *trace.Recorder // records reads and uploads; nil: they are not traced

	Policy string // which expert loses its slot, see [expertcache.ByName]; "": the default

	LinkRate, DiskRate *limit.Rate // limit the speed of uploads, and of reads from disk; nil: no limit
}

// Store holds a model's weights. One goroutine calls Begin, Abort, Replan and Recover.
type Store struct {
	o        Options            // the options given to New; Plan is the plan in use
	life     context.Context    // context of the whole store: reads and uploads that must go on when a step is canceled use it
	end      context.CancelFunc // cancels life, when the store is closed
	lock     monitor            // guards what steps and the loading goroutines share
	progress progress           // how many of the bytes that are kept have arrived
	watch    watch              // traces reads and uploads that have ended, and notes for Late when each unit's bytes came
	disk     disk               // the model's files
	vram     vram               // blocks of resident units, and the ring
	units    *Units             // units of the plan, resident or streamed
	experts  *Experts           // experts in slots; nil: the plan has none
	tables   []embedding        // the model's tables of tokens, which stay on the host

	stop    context.CancelFunc // cancels the context of the loading goroutines; nil: they are not running
	loading sync.WaitGroup     // waits for the loading goroutines
}

// New opens the files, allocates VRAM and staging, and starts to load. If ctx ends during the allocations, New fails. It does not wait for loading: see
// [Store.Loaded].
func New(ctx context.Context, o Options) (*Store, error) {
	s := &Store{o: o, watch: newWatch(&o), vram: vram{heap: o.VRAM, shared: o.Shared, inPlace: o.Plan.InPlace}, progress: progress{tell: o.Progress}}
	s.life, s.end = context.WithCancel(context.Background())
	s.lock.changed = sync.NewCond(&s.lock.mu)
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.countProgress()
	s.startLoading()
	return s, nil
}

// open opens the files and allocates VRAM and staging. After a failure [Store.Close] frees what it made.
func (s *Store) open(ctx context.Context) (err error) {
	if err = s.disk.open(s.o.Model); err != nil {
		return err
	}
	if err = s.vram.open(ctx, s.o.Plan); err != nil {
		return err
	}
	if s.units, err = newUnits(s); err != nil {
		return err
	}
	if s.o.Plan.Experts != nil {
		if s.experts, err = newExperts(ctx, s); err != nil {
			return err
		}
	}
	s.openTables()
	return nil
}

// newSources makes n empty sources of "units" or "experts".
func (s *Store) newSources(what string, n int) *sources {
	return &sources{what: what, lock: &s.lock, progress: &s.progress, heap: s.o.Host, logger: s.o.Logger, list: make([]source, n)}
}

// Units returns the part of the store that brings the units of the plan to VRAM.
func (s *Store) Units() *Units { return s.units }

// Experts returns the part of the store that keeps experts in slots; nil: the plan has no slots.
func (s *Store) Experts() *Experts { return s.experts }

// countProgress sums up the progress of loading anew from the states of all sources.
func (s *Store) countProgress() {
	s.lock.mu.Lock()
	defer s.lock.mu.Unlock()
	p := &s.progress
	p.done, p.total = s.units.sources.bytes()
	if s.experts != nil {
		done, total := s.experts.sources.bytes()
		p.done, p.total = p.done+done, p.total+total
	}
}

// startLoading starts the loading goroutines: one pins host memory, the walker reads units, the feeder uploads them, and one reads the host copies of
// experts.
func (s *Store) startLoading() {
	ctx, cancel := context.WithCancel(s.life)
	s.stop = cancel
	s.units.start()
	s.loading.Go(func() {
		s.units.sources.pin(ctx, s.o.Plan.HostBlocks)
		if s.experts != nil {
			s.experts.sources.pin(ctx, s.o.Plan.Experts.HostBlocks)
		}
	})
	for _, do := range []func(context.Context) error{s.units.walk, s.units.feed} {
		s.loading.Go(func() {
			if err := do(ctx); err != nil {
				s.lock.fail(err)
				cancel()
			}
		})
	}
	if s.experts != nil {
		s.loading.Go(func() {
			if err := s.experts.sources.fill(ctx, s.experts.fetcher); err != nil {
				s.lock.fail(err)
			}
		})
	}
}

// stopLoading ends the loading goroutines, and waits for them and for the reads of units under way; safe twice.
func (s *Store) stopLoading() {
	if s.stop == nil {
		return
	}
	s.stop()
	s.lock.wake()
	s.loading.Wait()
	s.units.fetcher.stop() // before the memory that it reads into goes
	s.stop = nil
}

// Begin opens a step. head says whether the step needs the head: if no row needs logits, the pieces of the head are not streamed and must not be
// acquired.
func (s *Store) Begin(head bool) {
	s.lock.mu.Lock()
	defer s.lock.mu.Unlock()
	s.units.steps.begin(head)
	s.lock.changed.Broadcast()
}

// Abort ends the step begun last early: it stops reading streamed units for it, drops those that have arrived, and empties all batches. It waits for
// uploads under way. The compute timeline must have reached value, which the step's last submission signals.
func (s *Store) Abort(value uint64) error {
	if s.experts != nil {
		if err := s.experts.abort(value); err != nil {
			return err
		}
	}
	return s.units.abort(value)
}

// Wake lets a [Units.Acquire] or [Batch.SubmitUploads] that waits look at its context. Call it after the context has ended.
func (s *Store) Wake() { s.lock.wake() }

// Loaded waits until all bytes that are kept in VRAM or host memory, tables of tokens among them, have arrived there. Once a step has begun it may return before:
// a full ring can hold up the remaining units until the next step.
func (s *Store) Loaded(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.Wake)()
	if err := s.units.loaded(ctx); err != nil {
		return err
	}
	for i := range s.tables {
		if err := s.tables[i].waitRead(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Embeddings copies the rows of table i of [plan.Plan].Tables for the tokens to dst, encoded as in the file. It reads rows that are not in RAM from disk.
func (s *Store) Embeddings(i int, dst []byte, tokens []int32) error {
	return s.tables[i].rows(dst, tokens)
}

// Traffic returns the bytes uploaded and the bytes read from disk so far, for units and for experts, but not the rows of tables of tokens. A read counts from
// its start on.
func (s *Store) Traffic() (uploaded, fromDisk int64) {
	uploaded, fromDisk = s.units.fetcher.uploaded.Load(), s.units.fetcher.fromDisk.Load()
	if x := s.experts; x != nil {
		uploaded, fromDisk = uploaded+x.fetcher.uploaded.Load(), fromDisk+x.fetcher.fromDisk.Load()
	}
	return uploaded, fromDisk
}

// Direct reports whether all files are read past the page cache.
func (s *Store) Direct() bool { return s.disk.direct() }

// Busy is how long at least one read, and at least one upload, was under way so far. An upload counts after the Collect that follows its end. Units and
// experts have separate readers and uploads: each time is the longer one of the two, not the sum.
func (s *Store) Busy() (disk, link time.Duration) {
	disk, link = s.units.fetcher.busyTimes()
	if s.experts != nil {
		d, l := s.experts.fetcher.busyTimes()
		disk, link = max(disk, d), max(link, l)
	}
	return disk, link
}

// Collect finds out which uploads have ended, and does not wait. [Store.Busy], [Store.Late] and traces include an upload only after the Collect that
// follows its end.
func (s *Store) Collect() error {
	if s.experts != nil {
		if err := s.experts.fetcher.up.Collect(); err != nil {
			return err
		}
	}
	return s.units.fetcher.up.Collect()
}

// Late is how long after ticks, a timestamp of the device, the upload of unit i ended: the upload for the step begun last, or the only one if the unit
// stays in VRAM. It is 0 or less if the bytes were there by then. Call [Store.Collect] first. ok is false if no end of an upload is known.
func (s *Store) Late(i int, ticks uint64) (late time.Duration, ok bool) {
	step := 0
	if s.units.list[i].Tier != plan.VRAM {
		s.lock.mu.Lock()
		step = s.units.steps.begun
		s.lock.mu.Unlock()
	}
	return s.watch.late(step, i, ticks)
}

// Close stops loading, waits for reads and uploads, and frees everything; safe twice. No step may be running.
func (s *Store) Close() error {
	s.lock.close()
	s.end()
	s.stopLoading()
	for i := range s.tables {
		s.tables[i].close()
	}
	var errs []error
	if s.experts != nil {
		errs = append(errs, s.experts.close())
	}
	if s.units != nil {
		errs = append(errs, s.units.close())
	}
	s.vram.close()
	errs = append(errs, s.disk.close())
	return errors.Join(errs...)
}
