package decompose

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
)

const (
	chunkBytes = 4 << 20
	chunks     = 8 // in flight: read, hashed, written, and some between
)

// chunk is a piece of a file on its way from the source through the hash to the disk.
type chunk struct {
	file *outFile
	p    []byte
	last bool
	sum  string // with the last one, once hashed
}

// written is a file whose bytes all are with the kernel.
type written struct {
	file *outFile
	f    *outParts
	sum  string
}

// copyFiles writes every file that is not finished. Four goroutines work side by side, so that a
// slow step (a sync, above all) does not hold up the others: read, hash, write, finish.
func (j *job) copyFiles(ctx context.Context) error {
	var todo []*outFile
	resumed, largest := int64(0), int64(0)
	for _, f := range j.layout.files {
		if f.finished {
			resumed += f.Bytes
		} else {
			todo = append(todo, f)
			largest = max(largest, f.Bytes)
		}
	}
	if resumed > 0 {
		j.log().Info("decompose resumes", "folder", j.partial.dir, "finished_bytes", resumed)
	}
	j.begin(StageCopy, resumed, j.layout.manifest.TotalBytes)
	if len(todo) == 0 {
		return nil
	}
	free := make(chan []byte, chunks)
	for range chunks {
		free <- make([]byte, min(chunkBytes, largest))
	}
	read, hashed, done := make(chan chunk, chunks), make(chan chunk, chunks), make(chan written, 1)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer close(read); return j.read(ctx, todo, free, read) })
	g.Go(func() error { defer close(hashed); return hash(ctx, read, hashed) })
	g.Go(func() error { defer close(done); return j.write(ctx, hashed, free, done) })
	g.Go(func() error { return j.finish(done) })
	return g.Wait()
}

func (j *job) read(ctx context.Context, todo []*outFile, free <-chan []byte, out chan<- chunk) error {
	for _, f := range todo {
		for off := int64(0); off < f.Bytes; {
			buf, err := take(ctx, free)
			if err != nil {
				return err
			}
			p := buf[:min(int64(len(buf)), f.Bytes-off)]
			if err := f.fill(j.src, p, off); err != nil {
				return sourceError(err)
			}
			if j.o.Finite {
				if err := checkFinite(f, p, off); err != nil {
					return err
				}
			}
			off += int64(len(p))
			if err := give(ctx, out, chunk{file: f, p: p, last: off == f.Bytes}); err != nil {
				return err
			}
		}
	}
	return nil
}

// sourceError tells a source that ends early from one that can't be read.
func sourceError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	return err
}

func hash(ctx context.Context, in <-chan chunk, out chan<- chunk) error {
	h := sha256.New()
	for c := range in {
		h.Write(c.p)
		if c.last {
			c.sum = hex.EncodeToString(h.Sum(nil))
			h.Reset()
		}
		if err := give(ctx, out, c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (j *job) write(ctx context.Context, in <-chan chunk, free chan<- []byte, out chan<- written) error {
	var f *outParts
	defer func() {
		if f != nil {
			f.close() // of a file not whole, which the next run removes
		}
	}()
	for c := range in {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f == nil {
			var err error
			if f, err = j.partial.createParts(c.file); err != nil {
				return err
			}
		}
		if err := f.write(j.hooks, c.p); err != nil {
			return err
		}
		j.advance(len(c.p))
		free <- c.p[:cap(c.p)] // never blocks: it holds them all
		if !c.last {
			continue
		}
		if err := give(ctx, out, written{c.file, f, c.sum}); err != nil {
			return err
		}
		f = nil
	}
	return ctx.Err()
}

// finish syncs each file, names it and notes it. It goes on through a cancel: what came this far
// is work done.
func (j *job) finish(in <-chan written) error {
	for w := range in {
		mtimes, err := j.partial.finishParts(w.f, w.file.FileEntry)
		if err == nil {
			err = j.partial.append(journalLine{File: w.file.Name, Bytes: w.file.Bytes, MTime: mtimes[0], Parts: mtimes[1:], SHA256: w.sum})
		}
		if err != nil {
			for w := range in {
				w.f.close()
			}
			return err
		}
		w.file.SHA256, w.file.finished = w.sum, true
	}
	return nil
}

func take[T any](ctx context.Context, c <-chan T) (T, error) {
	select {
	case v := <-c:
		return v, nil
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func give[T any](ctx context.Context, c chan<- T, v T) error {
	select {
	case c <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
