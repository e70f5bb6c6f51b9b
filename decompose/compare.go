package decompose

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"leat/decompose/pack"
)

// compare reads the pack's files and the source again, from the disk where the system lets us, and
// compares them byte for byte and with the checksums. Files that differ lose their journal entry.
func (j *job) compare(ctx context.Context) error {
	j.begin(StageVerify, 0, j.layout.manifest.TotalBytes)
	for _, path := range j.src.Files {
		if f, err := os.Open(path); err == nil {
			pack.DropCache(f)
			f.Close()
		}
	}
	differ := make([]bool, len(j.layout.files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for i, f := range j.layout.files {
		g.Go(func() error {
			same, err := j.compareFile(ctx, f)
			differ[i] = !same
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	e := &CompareError{}
	for i, f := range j.layout.files {
		if !differ[i] {
			continue
		}
		f.finished = false
		e.Files = append(e.Files, f.Name)
		if err := j.partial.append(journalLine{Bad: f.Name}); err != nil {
			return err
		}
	}
	if len(e.Files) > 0 {
		return e
	}
	return nil
}

func (j *job) compareFile(ctx context.Context, f *outFile) (same bool, err error) {
	parts, err := j.layout.manifest.OpenFile(j.partial.dir, f.FileEntry)
	if err != nil {
		return false, fmt.Errorf("verify: %w", err)
	}
	defer parts.Close()
	parts.DropCache()
	r := io.NewSectionReader(parts, 0, f.Bytes)
	h := sha256.New()
	size := min(chunkBytes, f.Bytes)
	ours, theirs := make([]byte, size), make([]byte, size)
	for off := int64(0); off < f.Bytes; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n := min(size, f.Bytes-off)
		if err := f.fill(j.src, theirs[:n], off); err != nil {
			return false, sourceError(err)
		}
		_, err := io.ReadFull(r, ours[:n])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || (err == nil && !bytes.Equal(ours[:n], theirs[:n])) {
			j.advance(int(f.Bytes - off))
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("verify: %w", err)
		}
		h.Write(ours[:n])
		off += n
		j.advance(int(n))
	}
	return hex.EncodeToString(h.Sum(nil)) == f.SHA256, nil
}
