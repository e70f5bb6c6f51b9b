package weights

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"leat/decompose/pack"
	"leat/internal/plan"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
)

// source says where the bytes of one unit or expert come from: pieces on disk, or the host copy that was read from them.
type source struct {
	unit   *pack.Unit // nil: the model has no such expert
	tag    int        // index in the plan of the unit whose name reads and uploads have in traces
	pieces []piece    // parts of the source that are read from disk, one read each
	tier   plan.Tier  // Host: a host copy is kept; VRAM: the resident bytes are kept; Disk: nothing is

	block   int        // block of pinned memory that has the host copy
	host    *vk.Buffer // the block once it is pinned; nil: not yet, or there is no host copy
	state   keptState  // whether the kept bytes have arrived
	readErr error      // why a read into the host copy failed since the copy was last claimed; nil: none has failed
}

// keptState says whether a source's bytes have arrived where they are kept: in VRAM or in the host copy.
type keptState int

const (
	absent  keptState = iota // no goroutine has begun to read the bytes
	reading                  // one goroutine is bringing the bytes
	present                  // all bytes are in the host copy, or their upload to VRAM is submitted
)

// kept reports whether the plan keeps the source's bytes in VRAM or host memory, so that they are read from disk only once.
func (s *source) kept() bool { return s.tier == plan.VRAM || s.tier == plan.Host }

// piece is a part of a source that is read from disk by one read.
type piece struct {
	file    int   // index of the model's file
	off, n  int64 // offset and size in the file
	unitOff int64 // offset in the unit or expert
	hostOff int64 // offset in the block of pinned memory
}

// pieces cuts a unit's extents into pieces: where blocks of the disk begin, so that no block is read twice, and where stripes begin, so that each piece
// is on one drive. most is the size of the largest piece, widened to whole blocks.
func pieces(u *plan.Unit, most, stripe int64) []piece {
	var list []piece
	plan.HostExtents(&u.Unit, func(e pack.Extent, at int64) {
		for done := int64(0); done < e.Bytes; {
			n := min(most-file.Skip(e.Off+done), e.Bytes-done)
			if stripe > 0 {
				n = min(n, stripe-(e.Off+done)%stripe)
			}
			list = append(list, piece{file: e.File, off: e.Off + done, n: n, unitOff: e.UnitOff + done, hostOff: u.Off + at + done})
			done += n
		}
	})
	return list
}

// sources are the sources of all units, or of all experts, with the pinned memory of their host copies.
type sources struct {
	what     string       // "units" or "experts", for messages
	lock     *monitor     // the store's lock: guards the states of sources and the progress
	progress *progress    // the store's progress of loading
	heap     *mem.Heap    // host memory for the blocks
	logger   *slog.Logger // gets a warning for each block that can't be pinned
	list     []source     // the sources, by index of the unit in the plan, or of the expert in the model
	blocks   []*vk.Buffer // blocks of pinned memory allocated so far; nil: the block could not be pinned
}

// pin allocates the planned blocks of pinned memory, except those of an earlier call, and assigns each to its sources. A block that can't be pinned is
// logged, and its sources stay on disk.
func (s *sources) pin(ctx context.Context, planned []int64) {
	for b := len(s.blocks); b < len(planned) && ctx.Err() == nil; b++ {
		buffer, err := s.heap.AllocHost(fmt.Sprintf("host block %d of %s", b, s.what), planned[b])
		if err != nil {
			s.logger.Warn("host tier: "+s.what+" stay on disk", "bytes", planned[b], "error", err)
		}
		s.blocks = append(s.blocks, buffer)
		s.assign(b, buffer)
	}
}

// assign tells the sources with host copies in a block that the block is pinned. A nil buffer means that it could not be: then their tier becomes Disk.
func (s *sources) assign(block int, buffer *vk.Buffer) {
	s.lock.mu.Lock()
	defer s.lock.mu.Unlock()
	defer s.lock.changed.Broadcast()
	for i := range s.list {
		if src := &s.list[i]; src.tier == plan.Host && src.block == block {
			if src.host = buffer; buffer == nil {
				src.tier = plan.Disk
				s.progress.total -= src.unit.Bytes
			}
		}
	}
	s.progress.report()
}

// claim gives the state of a source's kept bytes; for a host copy it waits until the memory is pinned. If the state was absent, the caller is from now on
// the one goroutine that has to read them, and must end the claim. A source that is only on disk is always absent, and any goroutine may read it.
func (s *sources) claim(ctx context.Context, src *source) (keptState, error) {
	s.lock.mu.Lock()
	defer s.lock.mu.Unlock()
	if err := s.lock.wait(ctx, func() bool { return src.tier != plan.Host || src.host != nil }); err != nil {
		return absent, err
	}
	state := src.state
	if src.kept() && state == absent {
		src.state, src.readErr = reading, nil
	}
	return state, nil
}

// isClaimed reports whether a source's kept bytes are being read, or present.
func (s *sources) isClaimed(src *source) bool {
	s.lock.mu.Lock()
	defer s.lock.mu.Unlock()
	return src.state != absent
}

// endClaim ends the claim on a host copy: the copy is complete, or absent again because of err.
func (s *sources) endClaim(src *source, err error) {
	s.lock.mu.Lock()
	defer s.lock.mu.Unlock()
	defer s.lock.changed.Broadcast()
	if src.readErr = err; err != nil {
		src.state = absent
		return
	}
	s.markPresent(src)
}

// markPresent notes, under the lock, that the bytes of a source have arrived where they are kept, if they are kept, and reports the progress.
func (s *sources) markPresent(src *source) {
	if src.kept() && src.state != present {
		src.state = present
		s.progress.done += src.unit.Bytes
		s.progress.report()
	}
}

// waitPresent waits until the goroutine that has claimed a host copy has read it. It fails if that goroutine could not.
func (s *sources) waitPresent(ctx context.Context, src *source) error {
	s.lock.mu.Lock()
	defer s.lock.mu.Unlock()
	if err := s.lock.wait(ctx, func() bool { return src.state != reading }); err != nil {
		return err
	}
	return src.readErr
}

// fillDepth is the number of reads into host copies that are under way while steps run. It is small because a step's own reads of missing experts must
// not wait long.
const fillDepth = plan.ReadDepth / 2

// fill reads all absent host copies of experts, in order, unless a step claims them first. It returns when all are read, one failed, or ctx has ended,
// and waits for the reads under way.
func (s *sources) fill(ctx context.Context, f *fetcher) error {
	var under []fetch
	var failed error
	end := func() {
		r := &under[0]
		err := r.request.Wait(context.Background())
		if err != nil && failed == nil && f.life.Err() == nil {
			failed = fmt.Errorf("read %s: %w", r.src.unit.Name, err)
		}
		s.noteHostRead(r, errors.Join(err, failed))
		under = under[1:]
	}
	for i := range s.list {
		src := &s.list[i]
		if src.unit == nil {
			continue
		}
		if failed != nil {
			break
		}
		state, err := s.claim(ctx, src)
		if err != nil {
			break
		}
		if state != absent || src.tier != plan.Host {
			continue
		}
		for k := range src.pieces {
			if len(under) == fillDepth {
				end()
			}
			r := fetch{src: src, piece: &src.pieces[k], request: file.NewRequest(), tag: uint64(src.tag), last: k == len(src.pieces)-1}
			if err := f.read(f.life, &r); err != nil { // the store is being closed
				s.endClaim(src, err)
				break
			}
			under = append(under, r)
		}
	}
	for len(under) > 0 {
		end()
	}
	return failed
}

// noteHostRead notes that a read into a claimed host copy has ended with err. With the last read of a source it ends the claim.
func (s *sources) noteHostRead(r *fetch, err error) {
	src := r.src
	if src.readErr == nil {
		src.readErr = err
	}
	if r.last {
		s.endClaim(src, src.readErr)
	}
}

// bytes sums up the kept bytes of all sources: those that are present, and all.
func (s *sources) bytes() (done, total int64) {
	for i := range s.list {
		if src := &s.list[i]; src.unit != nil && src.kept() {
			total += src.unit.Bytes
			if src.state == present {
				done += src.unit.Bytes
			}
		}
	}
	return done, total
}

// close frees the pinned memory. No read into it may be under way.
func (s *sources) close() {
	for _, b := range s.blocks {
		if b != nil {
			s.heap.Free(b)
		}
	}
	s.blocks = nil
}

// progress counts the bytes that have arrived where they are kept: in host memory, or in VRAM, where bytes count once their upload is submitted. It is
// used under the store's lock.
type progress struct {
	done, total int64                   // kept bytes that have arrived, and all kept bytes
	ended       bool                    // tell was called with all bytes done
	tell        func(done, total int64) // [Options.Progress]
}

// report calls tell, unless an earlier call has said that all bytes are done.
func (p *progress) report() {
	if p.tell != nil && !p.ended {
		p.ended = p.done == p.total
		p.tell(p.done, p.total)
	}
}
