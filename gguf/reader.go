package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

const (
	// maxHeader bounds the bytes of a header and the memory that it may take, whatever the file's size
	// says: a sparse file claims any size for nothing. The largest in use (a vocabulary of 262 144 tokens
	// with 515 000 merges) is 15 MiB, and takes 22 MiB of memory.
	maxHeader = 64 << 20
	maxEmpty  = 1 << 16   // empty strings in an array; a hole in a file reads as such
	maxName   = 1<<16 - 1 // bytes of a key (the format's bound) or a tensor's name
	maxDepth  = 8         // arrays within arrays
)

// About what Go keeps of a thing beside its content, for [reader.take].
const (
	stringBytes = 16
	sliceBytes  = 48
	pairBytes   = 128
	infoBytes   = 256
)

const cutShort = "the file is cut short or damaged: download or copy it again"

// reader walks a header. The first failure sticks: later reads give zeros, and the
// caller looks at err when it must decide.
type reader struct {
	br  *bufio.Reader
	off int64
	end int64 // a header must end here: the file's size or maxHeader
	mem int64 // bytes that what was read takes in memory
	err error
	buf [8]byte
}

func newReader(r io.ReaderAt, size int64) *reader {
	end := min(size, maxHeader)
	return &reader{br: bufio.NewReaderSize(io.NewSectionReader(r, 0, end), 1<<18), end: end}
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// has reports whether n elements of at least each bytes can follow.
func (r *reader) has(n uint64, each int64, what string) bool {
	if r.err != nil {
		return false
	}
	if left := r.end - r.off; n > uint64(left/each) {
		wanted := "at most what the remaining %d bytes hold"
		if r.end == maxHeader {
			wanted = fmt.Sprintf("a header of at most %d MiB, of which %%d bytes are left", maxHeader>>20)
		}
		e := badf(r.off, what, fmt.Sprintf("%d, each of %d bytes or more", n, each), wanted, left)
		e.hint = cutShort
		r.fail(e)
		return false
	}
	return true
}

// take counts n bytes of memory. It comes before they are allocated.
func (r *reader) take(n int64, what string) bool {
	if r.mem += n; r.err == nil && r.mem > maxHeader {
		r.fail(badf(r.off, what, fmt.Sprintf("a header that takes over %d MiB of memory", maxHeader>>20), "less"))
	}
	return r.err == nil
}

func (r *reader) bytes(p []byte, what string) bool {
	if !r.has(uint64(len(p)), 1, what) {
		return false
	}
	n, err := io.ReadFull(r.br, p)
	if err != nil {
		// has() said the file holds these bytes, so it shrank or the disk failed.
		r.fail(fmt.Errorf("%s: found %d bytes at offset %d, want %d: %w", what, n, r.off, len(p), err))
		return false
	}
	r.off += int64(n)
	return true
}

func (r *reader) u8(what string) uint8 {
	if !r.bytes(r.buf[:1], what) {
		return 0
	}
	return r.buf[0]
}

func (r *reader) u16(what string) uint16 {
	if !r.bytes(r.buf[:2], what) {
		return 0
	}
	return binary.LittleEndian.Uint16(r.buf[:2])
}

func (r *reader) u32(what string) uint32 {
	if !r.bytes(r.buf[:4], what) {
		return 0
	}
	return binary.LittleEndian.Uint32(r.buf[:4])
}

func (r *reader) u64(what string) uint64 {
	if !r.bytes(r.buf[:8], what) {
		return 0
	}
	return binary.LittleEndian.Uint64(r.buf[:8])
}

func (r *reader) str(what string) string {
	return r.text(r.u64(what), what)
}

// text reads n bytes.
func (r *reader) text(n uint64, what string) string {
	var b strings.Builder // grows with what is read, whatever the length says
	if !r.copyText(&b, n, what) {
		return ""
	}
	return b.String()
}

// copyText reads n bytes into b, and reports whether there are as many.
func (r *reader) copyText(b *strings.Builder, n uint64, what string) bool {
	if !r.has(n, 1, what) || !r.take(int64(n), what) {
		return false
	}
	// Most are short: read them from the buffer without a copy in between.
	if int(n) <= r.br.Size() {
		p, err := r.br.Peek(int(n))
		if err == nil {
			b.Write(p)
			r.br.Discard(int(n))
			r.off += int64(n)
			return true
		}
	}
	got, err := io.CopyN(b, r.br, int64(n))
	if r.off += got; err != nil {
		r.fail(fmt.Errorf("%s: found %d bytes, want %d: %w", what, got, n, err))
	}
	return err == nil
}

// name reads a key or a tensor's name: not empty, at most 65535 bytes.
func (r *reader) name(what string) string {
	off := r.off
	s := r.str(what)
	if r.err == nil && (len(s) == 0 || len(s) > maxName) {
		r.fail(badf(off, what, fmt.Sprintf("%d bytes", len(s)), "1 to %d", maxName))
	}
	return s
}

func (r *reader) boolean(what string) bool {
	off, b := r.off, r.u8(what)
	if b > 1 {
		r.fail(badf(off, what, fmt.Sprintf("a bool of %d", b), "0 or 1"))
	}
	return b == 1
}

// value reads one value of type t; depth counts the arrays around it.
func (r *reader) value(t ValueType, what string, depth int) any {
	switch t {
	case Uint8:
		return r.u8(what)
	case Int8:
		return int8(r.u8(what))
	case Uint16:
		return r.u16(what)
	case Int16:
		return int16(r.u16(what))
	case Uint32:
		return r.u32(what)
	case Int32:
		return int32(r.u32(what))
	case Float32:
		return math.Float32frombits(r.u32(what))
	case Bool:
		return r.boolean(what)
	case String:
		return r.str(what)
	case Array:
		return r.array(what, depth)
	case Uint64:
		return r.u64(what)
	case Int64:
		return int64(r.u64(what))
	case Float64:
		return math.Float64frombits(r.u64(what))
	}
	r.fail(badf(r.off-4, what, t.String(), "a value type of 0 to %d", len(valueNames)-1))
	return nil
}

func (r *reader) array(what string, depth int) any {
	if depth >= maxDepth {
		r.fail(badf(r.off, what, fmt.Sprintf("arrays nested %d deep", depth+1), "at most %d", maxDepth))
		return nil
	}
	off, t := r.off, ValueType(r.u32(what))
	if !t.valid() {
		r.fail(badf(off, what, "an array of "+t.String(), "a value type of 0 to %d", len(valueNames)-1))
		return nil
	}
	n := r.u64(what)
	if !r.has(n, minBytes[t], what) {
		return nil
	}
	switch t {
	case Uint8:
		return []uint8(r.text(n, what))
	case Int8:
		return numbers[int8](r, n, what)
	case Uint16:
		return numbers[uint16](r, n, what)
	case Int16:
		return numbers[int16](r, n, what)
	case Uint32:
		return numbers[uint32](r, n, what)
	case Int32:
		return numbers[int32](r, n, what)
	case Float32:
		return numbers[float32](r, n, what)
	case Bool:
		return list(r, n, minBytes[t], func() bool { return r.boolean(what) })
	case String:
		t := r.texts(n, what)
		if t != nil && depth > 0 {
			return t.strings()
		}
		return t
	case Uint64:
		return numbers[uint64](r, n, what)
	case Int64:
		return numbers[int64](r, n, what)
	case Float64:
		return numbers[float64](r, n, what)
	default: // Array
		return list(r, n, sliceBytes, func() any { return r.array(what, depth+1) })
	}
}

// numbers reads n numbers, some at a time: the slice grows with what is read, whatever n says.
func numbers[T int8 | uint16 | int16 | uint32 | int32 | float32 | uint64 | int64 | float64](r *reader, n uint64, what string) (v []T) {
	var raw [1 << 13]byte
	size := binary.Size(T(0))
	for left := int(n); left > 0; {
		k := min(left, len(raw)/size)
		if !r.take(int64(k*size), "an array") || !r.bytes(raw[:k*size], what) {
			return nil
		}
		v = append(v, make([]T, k)...)
		if _, err := binary.Decode(raw[:k*size], binary.LittleEndian, v[len(v)-k:]); err != nil {
			r.fail(fmt.Errorf("%s: %w", what, err))
			return nil
		}
		left -= k
	}
	return v
}

// list reads n elements. The caller has held n against the bytes that are left; the list still grows
// with what is read.
func list[T any](r *reader, n uint64, each int64, next func() T) []T {
	v := make([]T, 0, min(n, 1024))
	for range n {
		if !r.take(each, "an array") {
			return nil
		}
		if v = append(v, next()); r.err != nil {
			return nil
		}
	}
	return v
}
