package weights

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"leat/decompose/pack"
	"leat/engine/plan"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// Options are what a Store is built from. All fields are needed but Progress.
type Options struct {
	Device   *vk.Device
	VRAM     *mem.Heap
	Host     *mem.Heap
	Model    *pack.Model
	Plan     *plan.Plan
	Logger   *slog.Logger
	Compute  *vk.Timeline                      // signalled by the steps that read the weights
	Progress func(doneBytes, totalBytes int64) // resident bytes loaded
}

// Store holds a model's weights. One goroutine calls Acquire and Release.
type Store struct {
	o        Options
	up       *xfer.Uploader
	blocks   []*vk.Buffer
	slots    []*vk.Buffer
	flow     []int // indices of the streamed units in execution order
	resident []mem.Span
	host     map[int]*vk.Buffer // host-tier units read so far
	loaded   uint64             // ticket of the last resident unit

	mu       sync.Mutex
	changed  *sync.Cond
	uploads  uint64   // units whose upload was submitted
	tickets  []uint64 // by slot: ticket of the unit in it
	released []uint64 // by slot: compute value after which it may be overwritten
	uses     uint64   // units acquired
	frees    uint64   // units released
	err      error    // first failure of the streamer; sticky
	cancel   context.CancelFunc
	done     chan struct{}
}

// Placed is where a unit's bytes are once Ticket is reached; Ticket 0: they are there.
type Placed struct {
	Address uint64
	Ticket  uint64
}

// New allocates blocks, slots and staging, uploads the resident units, and begins to
// stream the others. Canceling ctx stops the loading.
func New(ctx context.Context, o Options) (*Store, error) {
	s := &Store{o: o, host: map[int]*vk.Buffer{}, resident: make([]mem.Span, len(o.Plan.Units)), done: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	if err := s.allocate(); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.loadResident(ctx); err != nil {
		s.Close()
		return nil, err
	}
	for i := range o.Plan.Units {
		if o.Plan.Units[i].Tier != plan.VRAM {
			s.flow = append(s.flow, i)
		}
	}
	if len(s.flow) > 0 {
		streamCtx, cancel := context.WithCancel(context.Background())
		s.cancel = cancel
		go s.stream(streamCtx)
	}
	return s, nil
}

func (s *Store) allocate() error {
	p := s.o.Plan
	for i, n := range p.Blocks {
		b, err := s.o.VRAM.Alloc(fmt.Sprintf("weights block %d", i), n, vk.DeviceLocal)
		if err != nil {
			return err
		}
		s.blocks = append(s.blocks, b)
	}
	for i := range p.Slots {
		b, err := s.o.VRAM.Alloc(fmt.Sprintf("ring slot %d", i), p.SlotBytes, vk.DeviceLocal)
		if err != nil {
			return err
		}
		s.slots = append(s.slots, b)
	}
	s.tickets, s.released = make([]uint64, p.Slots), make([]uint64, p.Slots)
	up, err := xfer.New(s.o.Device, s.o.Host, p.Staging.Slots, p.Staging.SlotBytes)
	s.up = up
	return err
}

// Loaded is the ticket of the resident units. The host has waited for it; the first
// work that reads them waits again, which makes them visible to its queue.
func (s *Store) Loaded() uint64 { return s.loaded }

// Timeline is the one that tickets are on.
func (s *Store) Timeline() *vk.Timeline { return s.up.Timeline() }

func (s *Store) loadResident(ctx context.Context) error {
	p := s.o.Plan
	var total, done int64
	for i := range p.Units {
		if p.Units[i].Tier == plan.VRAM {
			total += p.Units[i].Bytes
		}
	}
	for i := range p.Units {
		u := &p.Units[i]
		if u.Tier != plan.VRAM {
			continue
		}
		s.resident[i] = mem.Span{Buffer: s.blocks[u.Block], Off: u.Off, Bytes: u.Bytes}
		t, err := s.upload(ctx, &u.Unit, s.resident[i])
		if err != nil {
			return err
		}
		s.loaded = max(s.loaded, t)
		done += u.Bytes
		if s.o.Progress != nil {
			s.o.Progress(done, total)
		}
	}
	return s.up.Timeline().Wait(ctx, s.loaded)
}

// upload reads a unit from disk piece by piece into staging and copies each piece to
// dst; waits hold back the copies, not the reading.
func (s *Store) upload(ctx context.Context, u *pack.Unit, dst mem.Span, waits ...vk.Point) (ticket uint64, err error) {
	return s.pieces(ctx, u, func(slot *xfer.Slot, off, n int64) (uint64, error) {
		return s.up.Submit(slot, []xfer.Copy{{Dst: dst.Slice(off, n), Bytes: n}}, waits...)
	})
}

// pieces fills staging slots with a unit's bytes in order and hands each to submit,
// with the unit's offset and length of the piece.
func (s *Store) pieces(ctx context.Context, u *pack.Unit, submit func(slot *xfer.Slot, off, n int64) (uint64, error)) (ticket uint64, err error) {
	piece := s.o.Plan.Staging.SlotBytes
	for _, e := range u.Extents {
		for at := int64(0); at < e.Bytes; at += piece {
			n := min(piece, e.Bytes-at)
			slot, err := s.up.Acquire(ctx)
			if err != nil {
				return 0, fmt.Errorf("stage %s: %w", u.Name, err)
			}
			if err := s.o.Model.ReadAt(e.File, slot.Bytes()[:n], e.Off+at); err != nil {
				return 0, fmt.Errorf("read %s: %w", u.Name, err)
			}
			if ticket, err = submit(slot, e.UnitOff+at, n); err != nil {
				return 0, fmt.Errorf("upload %s: %w", u.Name, err)
			}
		}
	}
	return ticket, nil
}

// Close stops the streamer, waits for the device and frees everything; safe twice.
func (s *Store) Close() error {
	if s.cancel != nil {
		s.cancel()
		s.mu.Lock()
		s.changed.Broadcast()
		s.mu.Unlock()
		<-s.done
		s.cancel = nil
	}
	var err error
	if s.up != nil {
		err = s.up.Close()
		s.up = nil
	}
	for _, b := range append(s.blocks, s.slots...) {
		s.o.VRAM.Free(b)
	}
	for _, b := range s.host {
		s.o.Host.Free(b)
	}
	s.blocks, s.slots, s.host = nil, nil, nil
	return err
}
