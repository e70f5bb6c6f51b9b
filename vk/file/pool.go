package file

import (
	"context"
	"errors"
	"sync"
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
}

// NewPool starts depth readers; fault may be nil.
func NewPool(depth int, fault Fault) *Pool {
	p := &Pool{queue: make(chan *Request, 64), stop: make(chan struct{}), fault: fault}
	for range max(1, depth) {
		p.wait.Go(p.read)
	}
	return p
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

func (p *Pool) read() {
	for {
		select {
		case <-p.stop:
			return
		case r := <-p.queue:
			r.done <- p.one(r)
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
