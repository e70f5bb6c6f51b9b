package weights

import (
	"context"
	"errors"
	"fmt"

	"leat/internal/expertcache"
	"leat/internal/plan"
	"leat/vk/file"
	"leat/vk/xfer"
)

// missFetch is a fetch, for a step, of one piece of an expert that was not in VRAM, while its bytes are being read. If its read request
// (fetch.request) is nil, it stands for the whole expert, which another goroutine is reading into the host copy.
type missFetch struct {
	fetch
	slot    *slot // slot that the cache gave to the expert
	dropped bool  // the step was aborted: once read, the bytes are not uploaded
}

// fetch begins to bring a missing expert to the slot that the cache gave it, and counts a miss. Bytes in a host copy are added to the upload that
// [Batch.Take] submits. For a host copy that another goroutine is filling it queues an entry without a request. Else it starts reads, to the host copy
// if the plan has one; [Experts.finishReads] submits their upload.
func (x *Experts) fetch(ctx context.Context, src *source, s *slot, t expertcache.Taken) error {
	s.place.reuse()
	s.expert = t
	state, err := x.sources.claim(ctx, src)
	if err != nil {
		return err
	}
	r := missFetch{fetch: fetch{src: src, tag: tagOf(x.step, src.tag), last: true}, slot: s}
	switch state {
	case present:
		x.Counters.hostMisses.Add(1)
		x.fromHost.add(&r.fetch, &s.place)
		return nil
	case reading:
		x.Counters.hostMisses.Add(1)
		x.reads = append(x.reads, r)
		return nil
	}
	x.Counters.diskMisses.Add(1)
	for i := range src.pieces {
		r.piece, r.last = &src.pieces[i], i == len(src.pieces)-1
		if err := x.read(ctx, r); err != nil {
			x.failClaim(src, err)
			return err
		}
	}
	return nil
}

// read starts the read of one piece of an expert and queues it in x.reads. While all requests or all staging are in use, it waits for older reads and
// submits their uploads.
func (x *Experts) read(ctx context.Context, r missFetch) (err error) {
	for r.request = x.spare(); r.request == nil || r.src.tier != plan.Host && x.staged() == x.p.Staging.Slots; {
		if err = x.finishReads(ctx); err != nil {
			break
		}
		if r.request == nil {
			r.request = x.spare()
		}
	}
	if err == nil {
		err = x.fetcher.read(x.fetcher.life, &r.fetch) // for staging it waits for uploads at most, never for the disk
	}
	if err != nil {
		if r.request != nil {
			x.fetcher.requests <- r.request
		}
		return err
	}
	x.Counters.diskBytes.Add(r.piece.n)
	x.reads = append(x.reads, r)
	return nil
}

// spare is a read request that is not in use; nil: all are.
func (x *Experts) spare() *file.Request {
	select {
	case r := <-x.fetcher.requests:
		return r
	default:
		return nil
	}
}

// staged is how many slots of staging the reads under way fill.
func (x *Experts) staged() (n int) {
	for i := range x.reads {
		if x.reads[i].staging != nil {
			n++
		}
	}
	return n
}

// failClaim ends the claim on an expert's host copy with err, because the read of a piece could not be started. If reads of the expert's other pieces
// are under way, the last of them ends the claim. An expert without a host copy has no claim.
func (x *Experts) failClaim(src *source, err error) {
	if src.tier != plan.Host {
		return
	}
	for i := len(x.reads) - 1; i >= 0; i-- {
		if r := &x.reads[i]; r.src == src && r.request != nil {
			r.last, src.readErr = true, err
			return
		}
	}
	x.sources.endClaim(src, err)
}

// finishReads waits for the oldest read in x.reads, and submits the upload of its bytes with those of the next reads that have ended. If ctx ends it
// leaves the read in x.reads.
func (x *Experts) finishReads(ctx context.Context) (err error) {
	r := &x.reads[0]
	if r.request == nil {
		err = x.sources.waitPresent(ctx, r.src)
	} else {
		err = r.request.Wait(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return err // the read is still under way
	}
	err = x.addRead(r, err)
	n := 1
	for ; err == nil && n < len(x.reads) && x.reads[n].request != nil && x.reads[n].request.Ready(); n++ {
		r := &x.reads[n]
		err = x.addRead(r, r.request.Wait(context.Background()))
	}
	x.reads = append(x.reads[:0], x.reads[n:]...)
	return errors.Join(err, x.fromDisk.submit(x.fetcher.life))
}

// addRead adds the bytes of a read that has ended, with err, to the upload fromDisk, unless it failed or was dropped. It gives back the request, and
// the staging of bytes that are not uploaded.
func (x *Experts) addRead(r *missFetch, err error) error {
	if r.request != nil {
		x.fetcher.requests <- r.request
		if r.staging == nil {
			x.sources.noteHostRead(&r.fetch, err)
		}
	}
	switch {
	case err == nil && !r.dropped:
		x.fromDisk.add(&r.fetch, &r.slot.place)
		return nil
	case r.staging != nil:
		r.staging.Release(xfer.Ticket{})
	}
	if r.dropped {
		return nil
	}
	return fmt.Errorf("read %s: %w", r.src.unit.Name, err)
}
