package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"unsafe"
)

// Align is what direct reads want of offset, length and address. Disks with blocks
// above it exist nowhere we know; one that refuses is read through the page cache.
const Align = 4096

// Skip is how far into its memory the bytes of a read at off begin.
func Skip(off int64) int64 { return off % Align }

// Room is the memory that a read of n bytes at off needs.
func Room(off, n int64) int64 { return (Skip(off) + n + Align - 1) / Align * Align }

func aligned(b []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%Align == 0 }

// Error says which read of which file failed; Err may be io.ErrUnexpectedEOF.
type Error struct {
	Path        string
	Off         int64
	Found, Want int64 // bytes
	Err         error
}

func (e *Error) Error() string {
	return fmt.Sprintf("read %s at %d: found %d bytes, wanted %d: %v", e.Path, e.Off, e.Found, e.Want, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Hint says what such an error often means.
func (e *Error) Hint() string {
	if errors.Is(e.Err, io.ErrUnexpectedEOF) {
		return "the file became shorter while it was in use: is it being written, or moved? leat verify tells whether a pack is whole"
	}
	return "see the system's log: the disk may be failing, or have been unplugged"
}

// File is a file opened to be read. Its methods are safe for use by several goroutines.
type File struct {
	path     string
	direct   *os.File // nil where the system has no direct reads
	buffered *os.File
	refused  atomic.Bool // a direct read was refused: no more of them
	first    version     // as it was opened
	changed  atomic.Bool // it was written to since

	parts  []*File // of a striped file, which has nothing else
	stripe int64
}

// Open opens a regular file.
func Open(path string) (*File, error) {
	buffered, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, buffered: buffered}
	if f.first, err = currentVersion(buffered); err != nil {
		buffered.Close()
		return nil, fmt.Errorf("look at %s: %w", path, err)
	}
	if f.direct, err = openDirect(path); err != nil {
		f.direct = nil // the page cache serves it
	}
	return f, nil
}

// OpenStriped opens files whose bytes are one file's, in turn, stripe at a time: a multiple
// of [Align].
func OpenStriped(paths []string, stripe int64) (*File, error) {
	if len(paths) == 1 {
		return Open(paths[0])
	}
	if len(paths) == 0 || stripe <= 0 || stripe%Align != 0 {
		return nil, fmt.Errorf("open %d files in stripes of %d bytes: want some, and a multiple of %d", len(paths), stripe, Align)
	}
	f := &File{path: paths[0], stripe: stripe}
	for _, path := range paths {
		part, err := Open(path)
		if err != nil {
			f.Close()
			return nil, err
		}
		f.parts = append(f.parts, part)
	}
	return f, nil
}

// Path is the name it was opened by; of a striped file, the first.
func (f *File) Path() string { return f.path }

// Stripe is how many bytes lie together; 0: all do.
func (f *File) Stripe() int64 { return f.stripe }

// at is the part that holds the byte at off, and where in it.
func (f *File) at(off int64) (part *File, in int64) {
	if f.parts == nil || off < 0 {
		return f, off
	}
	n, k := off/f.stripe, int64(len(f.parts))
	return f.parts[n%k], n/k*f.stripe + off%f.stripe
}

// Direct reports whether reads go past the page cache, as far as is known by now.
func (f *File) Direct() bool {
	for _, part := range f.parts {
		if !part.Direct() {
			return false
		}
	}
	return f.parts != nil || f.direct != nil && !f.refused.Load()
}

// Close closes the file; no read may be under way.
func (f *File) Close() error {
	if f.stripe > 0 {
		var errs []error
		for _, part := range f.parts {
			errs = append(errs, part.Close())
		}
		return errors.Join(errs...)
	}
	err := f.buffered.Close()
	if f.direct != nil {
		err = errors.Join(err, f.direct.Close())
	}
	return err
}

// Read reads n bytes at off to dst[Skip(off):], or fails with an [Error] or, of a file that was written to since it was opened, a
// [ChangedError]. dst has
// [Room] for it; what is not asked for may be overwritten too.
func (f *File) Read(ctx context.Context, dst []byte, off, n int64) error {
	if n == 0 {
		return nil
	}
	if n < 0 || off < 0 || int64(len(dst)) < Room(off, n) {
		return &Error{Path: f.path, Off: off, Want: n, Err: fmt.Errorf("memory of %d bytes is too small", len(dst))}
	}
	if f.parts != nil {
		return f.readParts(ctx, dst, off, n)
	}
	skip := Skip(off)
	if f.Direct() && aligned(dst) {
		found, err := fill(ctx, f.direct, dst[:Room(off, n)], off-skip, skip+n, Align)
		if err == nil {
			return f.Unchanged()
		}
		if !isRefusal(err) {
			return &Error{Path: f.path, Off: off, Found: max(0, found-skip), Want: n, Err: err}
		}
		f.refused.Store(true)
	}
	found, err := fill(ctx, f.buffered, dst[skip:skip+n], off, n, 1)
	forget(f.buffered, off-skip, Room(off, n))
	if err != nil {
		return &Error{Path: f.path, Off: off, Found: found, Want: n, Err: err}
	}
	return f.Unchanged()
}

// readParts reads from one part after another; who wants them busy at once cuts reads
// where stripes end.
func (f *File) readParts(ctx context.Context, dst []byte, off, n int64) error {
	first := off - Skip(off)
	for n > 0 {
		part, in := f.at(off)
		take := min(n, f.stripe-off%f.stripe)
		if err := part.Read(ctx, dst[off-Skip(off)-first:], in, take); err != nil {
			return err
		}
		off, n = off+take, n-take
	}
	return nil
}

// fill reads at off until p holds want bytes. A read that ends between blocks has met
// the end of the file: a direct read could not go on from there.
func fill(ctx context.Context, f *os.File, p []byte, off, want, block int64) (found int64, err error) {
	for found < want {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		n, err := pread(f, p[found:], off+found)
		if err != nil {
			return found, err
		}
		found += int64(n)
		if n == 0 || found < want && found%block != 0 {
			return found, io.ErrUnexpectedEOF
		}
	}
	return found, nil
}
