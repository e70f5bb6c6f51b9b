package pack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// DamageError lists the files of a pack that are not what its manifest says.
type DamageError struct {
	Dir   string
	Files []Damage // in the manifest's order
	Total int      // files in the pack
}

// Damage is one file and what is wrong with it.
type Damage struct {
	Name string
	What string
}

func (e *DamageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "verify %s: %d of %d files differ from %s: ", e.Dir, len(e.Files), e.Total, ManifestName)
	for i, d := range e.Files {
		if i == 8 {
			fmt.Fprintf(&b, "; and %d more", len(e.Files)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(d.Name + ": " + d.What)
	}
	return b.String()
}

func (e *DamageError) Is(target error) bool { return target == ErrFormat }
func (e *DamageError) Hint() string {
	return "the pack is damaged: remove it and decompose the GGUF again"
}

// Verify reads every file of the pack in dir and compares size and checksum with its manifest. It
// goes on after a damaged file; then the error is a [*DamageError]. progress may be nil.
func Verify(ctx context.Context, dir string, progress func(done, total int64)) error {
	man, err := ReadManifest(dir)
	if err != nil {
		return err
	}
	if err := man.checkFolders(dir); err != nil {
		return err
	}
	total := int64(0)
	for _, f := range man.Files {
		total += f.Bytes
	}
	var done atomic.Int64
	var mu sync.Mutex // progress is called by one at a time
	report := func(n int64) {
		done.Add(n)
		if progress != nil {
			mu.Lock()
			defer mu.Unlock()
			progress(done.Load(), total)
		}
	}
	what := make([]string, len(man.Files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(min(runtime.GOMAXPROCS(0), 4))
	for i, f := range man.Files {
		g.Go(func() error {
			var err error
			what[i], err = man.damage(ctx, dir, &f, report)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("verify %s: %w", dir, err)
	}
	e := &DamageError{Dir: dir, Total: len(man.Files)}
	for i, w := range what {
		if w != "" {
			e.Files = append(e.Files, Damage{Name: man.Files[i].Name, What: w})
		}
	}
	if len(e.Files) > 0 {
		return e
	}
	m, err := Open(dir) // the metadata and its fit with the manifest
	if err != nil {
		return err
	}
	return m.Close()
}

// damage says what is wrong with a file, "" for nothing. The error is ctx's alone.
func (m *Manifest) damage(ctx context.Context, dir string, f *FileEntry, report func(int64)) (string, error) {
	if err := m.checkParts(dir, f); err != nil {
		report(f.Bytes)
		var fe *FormatError
		if errors.As(err, &fe) {
			return fe.What, nil
		}
		return err.Error(), nil
	}
	parts, err := m.OpenFile(dir, f)
	if err != nil {
		return err.Error(), nil
	}
	defer parts.Close()
	parts.DropCache()
	r := io.NewSectionReader(parts, 0, f.Bytes)
	h := sha256.New()
	buf := make([]byte, 4<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		report(int64(n))
		if err == io.EOF {
			break
		}
		if err != nil {
			return err.Error(), nil
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, f.SHA256) {
		return fmt.Sprintf("found SHA-256 %s, wanted %s", got, f.SHA256), nil
	}
	return "", nil
}
