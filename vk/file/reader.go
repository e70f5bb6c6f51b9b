package file

import "context"

// Reader reads many pieces at a time: a [Pool] of readers, or a [Ring] of the kernel's.
type Reader interface {
	// Start queues a read; its result comes by [Request.Wait]. It waits while the queue is
	// full. Canceling ctx fails a read that the disk has not been asked for yet.
	Start(ctx context.Context, r *Request) error
	// Close waits for the reads under way; those that only stand in the queue fail with
	// [ErrClosed]. It may be called twice.
	Close()
}
