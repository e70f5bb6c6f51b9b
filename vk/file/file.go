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

// Buffer is n bytes of Go memory that takes direct reads, for tests and tools.
func Buffer(n int64) []byte {
	b := make([]byte, n+Align)
	skip := int64(-uintptr(unsafe.Pointer(&b[0])) & (Align - 1))
	return b[skip : skip+n : skip+n]
}

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
}

// Open opens a regular file.
func Open(path string) (*File, error) {
	buffered, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, buffered: buffered}
	if f.direct, err = openDirect(path); err != nil {
		f.direct = nil // the page cache serves it
	}
	return f, nil
}

// Path is the name it was opened by.
func (f *File) Path() string { return f.path }

// Direct reports whether reads go past the page cache, as far as is known by now.
func (f *File) Direct() bool { return f.direct != nil && !f.refused.Load() }

// Close closes the file; no read may be under way.
func (f *File) Close() error {
	err := f.buffered.Close()
	if f.direct != nil {
		err = errors.Join(err, f.direct.Close())
	}
	return err
}

// Read reads n bytes at off to dst[Skip(off):], or fails with an [Error]. dst has
// [Room] for it; what is not asked for may be overwritten too.
func (f *File) Read(ctx context.Context, dst []byte, off, n int64) error {
	if n == 0 {
		return nil
	}
	if n < 0 || off < 0 || int64(len(dst)) < Room(off, n) {
		return &Error{Path: f.path, Off: off, Want: n, Err: fmt.Errorf("memory of %d bytes is too small", len(dst))}
	}
	skip := Skip(off)
	if f.Direct() && aligned(dst) {
		found, err := fill(ctx, f.direct, dst[:Room(off, n)], off-skip, skip+n, Align)
		if err == nil {
			return nil
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
