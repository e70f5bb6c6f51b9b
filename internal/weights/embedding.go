package weights

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/vk/file"
	"leat/vk/mem"
)

// embedding is token_embd. It is not on the device: a step takes a few of its rows. Where the
// plan has RAM for it, it is read whole, once, and until a row is there it is read by itself:
// a row from a disk can take longer than all the rest of a resident model's step.
type embedding struct {
	tensor *pack.Tensor
	row    int64 // bytes
	rows   int64

	bytes []byte // what is kept: the file from its block before the tensor on; nil: nothing is
	free  func()
	skip  int64        // of bytes, to the tensor
	there atomic.Int64 // of bytes, as far as they have been read
	done  chan struct{}
	end   context.CancelFunc
}

// embeddingPiece is what is read of it at a time; the units' reads go on beside.
const embeddingPiece = 4 << 20

// openEmbedding finds token_embd and begins to read it, if it is to be kept.
func (s *Store) openEmbedding() error {
	t, _, ok := s.o.Model.Tensor(arch.TokenEmbd)
	if !ok || len(t.Shape) != 2 || t.Shape[0] < 1 {
		return nil // asking for a row of it fails
	}
	e := &s.embd
	e.tensor, e.rows, e.row = t, int64(t.Shape[0]), t.Bytes/int64(t.Shape[0])
	if s.o.Plan.EmbedBytes == 0 {
		return nil
	}
	e.skip = file.Skip(t.Off)
	var err error
	if e.bytes, e.free, err = mem.Anonymous(file.Room(t.Off, t.Bytes)); err != nil {
		s.o.Logger.Warn("token embeddings are not kept in RAM, and read as they are needed", "error", err)
		e.bytes = nil
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.done, e.end = make(chan struct{}), cancel
	go func() {
		defer close(e.done)
		if err := s.readEmbedding(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("token embeddings could not be read ahead: each is read as it is needed", "error", err)
		}
	}()
	return nil
}

func (s *Store) readEmbedding(ctx context.Context) error {
	e := &s.embd
	base, all := e.tensor.Off-e.skip, e.skip+e.tensor.Bytes
	for at := int64(0); at < all; at += embeddingPiece {
		n := min(embeddingPiece, all-at)
		if err := s.o.DiskRate.Wait(ctx, n); err != nil {
			return err
		}
		if s.o.Fault != nil {
			if err := s.o.Fault(s.files[e.tensor.File].Path(), base+at, n); err != nil {
				return err
			}
		}
		if err := s.files[e.tensor.File].Read(ctx, e.bytes[at:], base+at, n); err != nil {
			return err
		}
		e.there.Store(at + n)
	}
	return nil
}

// close ends the reading, which must be over before the files are closed.
func (e *embedding) close() {
	if e.bytes == nil {
		return
	}
	e.end()
	<-e.done
	e.free()
	e.bytes = nil
}

// Embeddings copies the rows of token_embd of the tokens, each as it is in the file, to dst.
func (s *Store) Embeddings(dst []byte, tokens []int32) error {
	e := &s.embd
	if e.tensor == nil {
		return fmt.Errorf("read rows of %s: there is no such matrix", arch.TokenEmbd)
	}
	if int64(len(dst)) < int64(len(tokens))*e.row {
		return fmt.Errorf("read %d rows of %s: found room for %d bytes, wanted %d", len(tokens), e.tensor.Name, len(dst), int64(len(tokens))*e.row)
	}
	absent := 0
	for i, id := range tokens {
		if !e.kept(dst[int64(i)*e.row:], id) {
			absent++
		}
	}
	if absent == 0 {
		return nil
	}
	if err := s.readAbsent(dst, tokens, absent); err != nil {
		return err
	}
	if err := s.files[e.tensor.File].Unchanged(); err != nil {
		return fmt.Errorf("read rows of %s: %w", e.tensor.Name, err)
	}
	return nil
}

// readAbsent reads the rows that are not in RAM.
func (s *Store) readAbsent(dst []byte, tokens []int32, absent int) error {
	if absent < embeddingReaders {
		return s.readRows(dst, tokens, 0, 1)
	}
	var all sync.WaitGroup // a disk serves many small reads at once
	var errs [embeddingReaders]error
	for n := range embeddingReaders {
		all.Go(func() { errs[n] = s.readRows(dst, tokens, n, embeddingReaders) })
	}
	all.Wait()
	return errors.Join(errs[:]...)
}

const embeddingReaders = 16

// kept copies the row of one token if it is in RAM.
func (e *embedding) kept(dst []byte, id int32) bool {
	at := e.skip + int64(id)*e.row
	if id < 0 || at+e.row > e.there.Load() {
		return false
	}
	copy(dst, e.bytes[at:at+e.row])
	return true
}

// readRows reads every n-th of the rows, from the first-th on, that are not in RAM.
func (s *Store) readRows(dst []byte, tokens []int32, first, n int) error {
	e := &s.embd
	for i := first; i < len(tokens); i += n {
		id, to := tokens[i], dst[int64(i)*e.row:int64(i+1)*e.row]
		if e.kept(to, id) {
			continue
		}
		if id < 0 || int64(id) >= e.rows {
			return fmt.Errorf("read row %d of %s: it has %d", id, e.tensor.Name, e.rows)
		}
		if err := s.o.Model.ReadAt(e.tensor.File, to, e.tensor.Off+int64(id)*e.row); err != nil {
			return fmt.Errorf("read row %d of %s: %w", id, e.tensor.Name, err)
		}
	}
	return nil
}
