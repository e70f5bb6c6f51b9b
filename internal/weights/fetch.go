package weights

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"leat/internal/plan"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// fetch is one piece of a source on its way: from disk to host memory, and from there to a place.
type fetch struct {
	src     *source       // source of the bytes
	piece   *piece        // nil: the whole source, from its host copy
	inPlace mem.Span      // VRAM that the host shares, into which the disk is read; without a Buffer: staging or the host copy
	request *file.Request // the read; nil: the host copy has the bytes, or another goroutine reads them
	staging *xfer.Slot    // slot of staging that the read fills; nil: it fills the host copy or inPlace
	tag     uint64        // tag of the read and of the upload, see [tagOf]
	last    bool          // no other piece of the source follows
}

// fetcher brings bytes from sources to places: it reads them into host memory and uploads them from there. Units and experts have a fetcher each,
// so that neither waits for staging that the other holds.
type fetcher struct {
	o         *Options           // the store's options
	life      context.Context    // the store's context: it ends when the store is closed
	disk      *disk              // the model's files
	watch     *watch             // told of reads and uploads that have ended
	up        *xfer.Uploader     // submits uploads, and owns the staging
	readers   int                // number of goroutines that read the disk
	maxReads  int                // largest number of reads that are under way, or whose bytes are not uploaded yet
	requests  chan *file.Request // read requests that are not in use; there are maxReads in all
	waitedFor xfer.Ticket        // ticket of the uploads that the step's queue has waited for

	uploaded, fromDisk atomic.Int64 // bytes uploaded, and bytes read from disk, so far

	mu   sync.Mutex    // guards pool and busy
	pool *file.Pool    // the readers; nil: they are stopped
	busy time.Duration // time that earlier pools had reads under way
}

// hostCopyReads is how many reads into host copies a fetcher has under way at most, beside one into each slot of staging.
const hostCopyReads = 8

// newFetcher makes a fetcher with the given staging, which it allocates. The readers do not run before [fetcher.start].
func newFetcher(s *Store, staging plan.Staging, readers int) (f *fetcher, err error) {
	f = &fetcher{life: s.life, disk: &s.disk, readers: readers, maxReads: staging.Slots + hostCopyReads, o: &s.o, watch: &s.watch}
	o := xfer.Options{Slots: staging.Slots, SlotBytes: staging.SlotBytes, Queues: s.o.Queues, Clocked: s.o.Trace != nil, Done: s.watch.uploadEnded}
	if s.vram.inPlace {
		o.Slots, o.SlotBytes = 1, file.Align // nothing is uploaded
	}
	f.up, err = xfer.New(s.o.Device, s.o.Host, o)
	return f, err
}

// start makes the read requests and starts the readers of the disk.
func (f *fetcher) start() {
	f.requests = make(chan *file.Request, f.maxReads)
	for range f.maxReads {
		f.requests <- file.NewRequest()
	}
	pool := file.NewPool(f.readers, f.o.Fault)
	pool.Limit(f.o.DiskRate)
	pool.Watch(f.watch.readEnded())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pool = pool
}

// stop waits for the reads under way and ends the readers of the disk; safe twice.
func (f *fetcher) stop() {
	if f.pool == nil {
		return
	}
	f.pool.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy, f.pool = f.busy+f.pool.Busy(), nil
}

// close stops the readers, waits for the uploads and frees the staging; safe twice.
func (f *fetcher) close() error {
	f.stop()
	if f.up == nil {
		return nil
	}
	return f.up.Close()
}

// read starts the read of a fetch, by its request: to VRAM that the host shares, to the host copy, or to staging, where it waits until a slot is free.
// It counts the bytes as read.
func (f *fetcher) read(ctx context.Context, r *fetch) (err error) {
	p, skip := r.piece, file.Skip(r.piece.off) // the read begins at a block of the disk, skip bytes before the piece
	var into []byte
	switch {
	case r.inPlace.Buffer != nil:
		into = r.inPlace.Buffer.Mapped()[r.inPlace.Off+p.unitOff-skip:]
	case r.src.host != nil:
		into = r.src.host.Mapped()[p.hostOff-skip:]
	default:
		if r.staging, err = f.up.Acquire(ctx); err != nil {
			return fmt.Errorf("stage %s: %w", r.src.unit.Name, err)
		}
		into = r.staging.Bytes()
	}
	q := r.request
	q.File, q.Off, q.N, q.Dst, q.Tag = f.disk.files[p.file], p.off, p.n, into[:file.Room(p.off, p.n)], r.tag
	if err := f.pool.Start(ctx, q); err != nil {
		if r.staging != nil {
			r.staging.Release(xfer.Ticket{})
		}
		return fmt.Errorf("read %s: %w", r.src.unit.Name, err)
	}
	f.fromDisk.Add(p.n)
	return nil
}

// waits appends to points the points that the step's queue must wait for before it reads the bytes of a ticket: none if the queue has waited for that
// ticket or a later one. The caller must submit work that waits for all of them, because they are not given again.
func (f *fetcher) waits(t xfer.Ticket, points []vk.Point) []vk.Point {
	if f.waitedFor.Covers(t) {
		return points
	}
	f.waitedFor = f.waitedFor.With(t)
	return f.up.Points(t, points)
}

// busyTimes are how long at least one read, and how long at least one upload, was under way so far.
func (f *fetcher) busyTimes() (disk, link time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if disk = f.busy; f.pool != nil {
		disk += f.pool.Busy()
	}
	return disk, f.up.Busy()
}

// upload gathers copies from host memory to places, to submit them together.
type upload struct {
	f       *fetcher       // submits the copies
	copies  []xfer.Copy    // copies that are not submitted yet
	after   uint64         // compute value at which earlier bytes of the places have been read: the copies wait for it
	before  xfer.Ticket    // earlier uploads to the places: the copies wait for them
	targets []uploadTarget // the places that the copies write, and the staging that they read
	waits   []vk.Point     // scratch: the points that the submission waits for
}

// uploadTarget is a place that an upload writes, and the staging that it reads. [upload.submit] gives both the upload's ticket: readers of the place
// and the next use of the staging wait for it. With last it notes that the place is filled.
type uploadTarget struct {
	to      *Place     // the place
	staging *xfer.Slot // the staging; nil: the bytes come from a host copy
	last    bool       // the copies include the last bytes of the place
}

// add adds the copies of a fetch, whose bytes are in host memory, to a place.
func (u *upload) add(r *fetch, to *Place) {
	u.after, u.before = max(u.after, to.After), u.before.With(to.before)
	u.targets = append(u.targets, uploadTarget{to, r.staging, r.last})
	if r.piece == nil {
		for i := range r.src.pieces {
			u.copy(r, &r.src.pieces[i], to)
		}
		return
	}
	u.copy(r, r.piece, to)
}

// copy adds the copy of one piece.
func (u *upload) copy(r *fetch, p *piece, to *Place) {
	c := xfer.Copy{Dst: to.span.Slice(p.unitOff, p.n), Src: r.src.host, SrcOff: p.hostOff, Bytes: p.n, Tag: r.tag}
	if r.staging != nil {
		c.Src, c.SrcOff = r.staging.Buffer, r.staging.Off+file.Skip(p.off)
	}
	u.copies = append(u.copies, c)
}

// submit submits the copies, gives their ticket to the places and the staging, and empties the upload, also after a failure.
func (u *upload) submit(ctx context.Context) error {
	var t xfer.Ticket
	var err error
	if len(u.copies) > 0 {
		t, err = u.send(ctx)
	}
	for i := range u.targets {
		e := &u.targets[i]
		if e.staging != nil {
			e.staging.Release(t)
		}
		e.to.ticket, e.to.filled = e.to.ticket.With(t), e.last && err == nil
	}
	u.clear()
	return err
}

// clear empties the upload without submitting its copies.
func (u *upload) clear() {
	u.copies, u.targets, u.after, u.before = u.copies[:0], u.targets[:0], 0, xfer.Ticket{}
}

// send submits the copies, which on the device wait for readers and earlier uploads of their places, and returns the ticket of the upload. It waits for
// Options.LinkRate, and counts the bytes.
func (u *upload) send(ctx context.Context) (t xfer.Ticket, err error) {
	var bytes int64
	for i := range u.copies {
		bytes += u.copies[i].Bytes
	}
	if rate := u.f.o.LinkRate; rate != nil {
		if err := rate.Wait(ctx, bytes); err != nil {
			return t, err
		}
	}
	u.waits = u.f.up.Points(u.before, u.waits[:0])
	if u.after > 0 {
		now, err := u.f.o.Compute.Value()
		if err != nil {
			return t, err
		}
		if now < u.after { // else the host has seen it, and the submission comes later
			u.waits = append(u.waits, vk.Point{Timeline: u.f.o.Compute, Value: u.after})
		}
	}
	u.f.uploaded.Add(bytes)
	return u.f.up.Submit(u.copies, u.waits...)
}
