package file

import (
	"context"
	"errors"
	"sync"
	"time"

	"leat/vk/limit"
)

// ErrClosed is what a read gets that a closed pool did not begin.
var ErrClosed = errors.New("the readers are closed")

// Fault is asked, with the file (of a striped one, the part) and the place in it, before each read and may fail it: for tests of what follows.
type Fault func(path string, off, n int64) error

// Request is one read, and its result. It can be used again once Wait has returned.
type Request struct {
	File *File
	Off  int64 // in the file
	N    int64 // bytes wanted
	Dst  []byte
	Tag  uint64 // what the caller likes to find in Done

	ctx  context.Context
	done chan error
}

// NewRequest makes a request that allocates nothing when it is used.
func NewRequest() *Request { return &Request{done: make(chan error, 1)} }

// Wait returns when the read is over. With a ctx that ended it may return before;
// then the memory belongs to the pool until that is closed.
func (r *Request) Wait(ctx context.Context) error {
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ready reports whether Wait would return at once; no request at all is ready.
func (r *Request) Ready() bool { return r == nil || len(r.done) > 0 }

// Pool reads with several readers, in the order of Start. It is safe for use by
// several goroutines.
type Pool struct {
	queue chan *Request
	stop  chan struct{}
	once  sync.Once
	wait  sync.WaitGroup
	fault Fault
	rate  *limit.Rate
	done  func(Done)

	mu    sync.Mutex
	under int           // reads under way
	since time.Time     // when there was at least one
	busy  time.Duration // until then
}

// Done is a read that succeeded.
type Done struct {
	Reader     int // of the pool; one reads one thing at a time
	Tag        uint64
	Bytes      int64
	Begin, End time.Time
}

// NewPool starts depth readers; fault may be nil.
func NewPool(depth int, fault Fault) *Pool {
	p := &Pool{queue: make(chan *Request, 64), stop: make(chan struct{}), fault: fault}
	for n := range max(1, depth) {
		p.wait.Go(func() { p.read(n) })
	}
	return p
}

// Limit slows the reads down to a rate, all readers together; before the first Start.
func (p *Pool) Limit(r *limit.Rate) { p.rate = r }

// Watch has done told of every read, by its reader. It must come before the first Start.
func (p *Pool) Watch(done func(Done)) { p.done = done }

// Busy is how long at least one read was under way.
func (p *Pool) Busy() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.under > 0 {
		return p.busy + time.Since(p.since)
	}
	return p.busy
}

// count says that one read more (or, with -1, less) is under way, from now on.
func (p *Pool) count(more int) (now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now = time.Now()
	if p.under > 0 {
		p.busy += now.Sub(p.since)
	}
	p.under, p.since = p.under+more, now
	return now
}

// Start queues a read; its result comes by Wait. It waits while the queue is full.
// Canceling ctx fails the read at the next block that is not yet asked for.
func (p *Pool) Start(ctx context.Context, r *Request) error {
	r.ctx = ctx
	select {
	case <-p.stop:
		return ErrClosed
	default:
	}
	select {
	case p.queue <- r:
		return nil
	case <-p.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Pool) read(reader int) {
	for {
		select {
		case <-p.stop:
			return
		case r := <-p.queue:
			d := Done{Reader: reader, Tag: r.Tag, Bytes: r.N, Begin: p.count(1)}
			err := p.one(r)
			if d.End = p.count(-1); err == nil && p.done != nil {
				p.done(d)
			}
			r.done <- err
		}
	}
}

func (p *Pool) one(r *Request) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if p.fault != nil {
		part, in := r.File.at(r.Off)
		if err := p.fault(part.path, in, r.N); err != nil {
			return &Error{Path: part.path, Off: in, Want: r.N, Err: err}
		}
	}
	if err := p.rate.Wait(r.ctx, r.N); err != nil {
		return err
	}
	return r.File.Read(r.ctx, r.Dst, r.Off, r.N)
}

// Close waits for the reads under way; those that only stand in the queue fail with
// ErrClosed. It may be called twice.
func (p *Pool) Close() {
	p.once.Do(func() { close(p.stop) })
	p.wait.Wait()
	for {
		select {
		case r := <-p.queue:
			r.done <- ErrClosed
		default:
			return
		}
	}
}
