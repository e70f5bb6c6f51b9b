package weights

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"leat/decompose/pack"
	"leat/vk/file"
	"leat/vk/mem"
)

// embedding is one of the model's tables of tokens. It stays on the host, because a step needs only a few of its rows. If the plan has RAM for it, it is read whole,
// once; until then, or without RAM, each row is read as it is needed.
type embedding struct {
	name   string       // name of the tensor
	o      *Options     // the store's options
	disk   *disk        // the model's files
	tensor *pack.Tensor // the matrix; nil: the model has none of the name
	count  int64        // rows of the matrix
	row    int64        // bytes of a row

	kept   []byte             // the tensor's bytes, from the start of the disk block in which they begin; nil: the plan has no RAM for them
	free   func()             // frees kept
	offset int64              // bytes of kept before the tensor
	read   atomic.Int64       // bytes of kept that have been read, from the start
	done   chan struct{}      // closed when readAll has ended
	cancel context.CancelFunc // cancels reading
}

// embeddingPiece is the number of bytes of a table that one read brings. It is small because units are read at the same time.
const embeddingPiece = 4 << 20

// openTables opens the model's tables of tokens.
func (s *Store) openTables() {
	s.tables = make([]embedding, len(s.o.Plan.Tables))
	for i, of := range s.o.Plan.Tables {
		e := &s.tables[i]
		e.name, e.o, e.disk = of.Name, &s.o, &s.disk
		t, _, ok := s.o.Model.Tensor(of.Name)
		if !ok || len(t.Shape) != 2 || t.Shape[0] < 1 {
			continue // asking for a row of it fails
		}
		e.tensor, e.count, e.row = t, int64(t.Shape[0]), t.Bytes/int64(t.Shape[0])
		if of.Kept {
			e.keep()
		}
	}
}

// keep allocates RAM for the table and starts a goroutine that reads it whole; a failure is only logged.
func (e *embedding) keep() {
	o, t := e.o, e.tensor
	e.offset = file.Skip(t.Off)
	var err error
	if e.kept, e.free, err = mem.Anonymous(file.Room(t.Off, t.Bytes)); err != nil {
		o.Logger.Warn("token embeddings are not kept in RAM, and read as they are needed", "error", err)
		e.kept = nil
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.done, e.cancel = make(chan struct{}), cancel
	go func() {
		defer close(e.done)
		if err := e.readAll(ctx); err != nil && ctx.Err() == nil {
			o.Logger.Warn("token embeddings could not be read ahead: each is read as it is needed", "error", err)
		}
	}()
}

// readAll reads the whole matrix into kept, piece by piece, and counts in e.read.
func (e *embedding) readAll(ctx context.Context) error {
	f := e.disk.files[e.tensor.File]
	base, all := e.tensor.Off-e.offset, e.offset+e.tensor.Bytes
	for at := int64(0); at < all; at += embeddingPiece {
		n := min(embeddingPiece, all-at)
		if err := e.o.DiskRate.Wait(ctx, n); err != nil {
			return err
		}
		if e.o.Fault != nil {
			if err := e.o.Fault(f.Path(), base+at, n); err != nil {
				return err
			}
		}
		if err := f.Read(ctx, e.kept[at:], base+at, n); err != nil {
			return err
		}
		e.read.Store(at + n)
	}
	return nil
}

// close cancels the goroutine that reads the matrix, waits for its end, and frees the RAM. The files are closed only after that.
func (e *embedding) close() {
	if e.kept == nil {
		return
	}
	e.cancel()
	<-e.done
	e.free()
	e.kept = nil
}

// waitRead waits until readAll has returned or ctx ends. An error of readAll is logged and not returned: rows that are missing are read as needed.
func (e *embedding) waitRead(ctx context.Context) error {
	if e.kept == nil {
		return nil
	}
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rows copies the matrix rows of the tokens to dst, encoded as in the file. It reads rows that are not in RAM from disk.
func (e *embedding) rows(dst []byte, tokens []int32) error {
	if e.tensor == nil {
		return fmt.Errorf("read rows of %s: there is no such matrix", e.name)
	}
	if int64(len(dst)) < int64(len(tokens))*e.row {
		return fmt.Errorf("read %d rows of %s: found room for %d bytes, wanted %d", len(tokens), e.tensor.Name, len(dst), int64(len(tokens))*e.row)
	}
	missing := 0
	for i, id := range tokens {
		if !e.copyKept(dst[int64(i)*e.row:], id) {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	if err := e.readAbsent(dst, tokens, missing); err != nil {
		return err
	}
	if err := e.disk.files[e.tensor.File].Unchanged(); err != nil {
		return fmt.Errorf("read rows of %s: %w", e.tensor.Name, err)
	}
	return nil
}

// readAbsent reads from disk the rows that are not in RAM, missing in number: by several goroutines if they are many.
func (e *embedding) readAbsent(dst []byte, tokens []int32, missing int) error {
	if missing < embeddingReaders {
		return e.readRows(dst, tokens, 0, 1)
	}
	var all sync.WaitGroup // a disk serves many small reads at the same time
	var errs [embeddingReaders]error
	for n := range embeddingReaders {
		all.Go(func() { errs[n] = e.readRows(dst, tokens, n, embeddingReaders) })
	}
	all.Wait()
	return errors.Join(errs[:]...)
}

// embeddingReaders is the number of goroutines that read rows from disk at the same time.
const embeddingReaders = 16

// copyKept copies the row of one token to dst if it has been read into RAM, and reports whether it has.
func (e *embedding) copyKept(dst []byte, id int32) bool {
	at := e.offset + int64(id)*e.row
	if id < 0 || at+e.row > e.read.Load() {
		return false
	}
	copy(dst, e.kept[at:at+e.row])
	return true
}

// readRows copies the rows of tokens first, first+n, first+2n and so on to dst, and reads from disk those that are not in RAM.
func (e *embedding) readRows(dst []byte, tokens []int32, first, n int) error {
	for i := first; i < len(tokens); i += n {
		id, to := tokens[i], dst[int64(i)*e.row:int64(i+1)*e.row]
		if e.copyKept(to, id) {
			continue
		}
		if id < 0 || int64(id) >= e.count {
			return fmt.Errorf("read row %d of %s: it has %d", id, e.tensor.Name, e.count)
		}
		if err := e.o.Model.ReadAt(e.tensor.File, to, e.tensor.Off+int64(id)*e.row); err != nil {
			return fmt.Errorf("read row %d of %s: %w", id, e.tensor.Name, err)
		}
	}
	return nil
}
