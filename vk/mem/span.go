package mem

import (
	"fmt"

	"leat/vk"
)

// Span is a piece of a buffer.
type Span struct {
	Buffer     *vk.Buffer
	Off, Bytes int64
	Ticket     uint64 // when the uploader's timeline reaches it the bytes are there
}

// Whole is the span of all of b.
func Whole(b *vk.Buffer) Span { return Span{Buffer: b, Bytes: b.Bytes} }

// Address is where shaders find the span.
func (s Span) Address() uint64 { return s.Buffer.Address + uint64(s.Off) }

// Slice is the part of s from off on. Like a slice expression it panics when
// the part does not lie in s.
func (s Span) Slice(off, bytes int64) Span {
	if off < 0 || bytes < 0 || off > s.Bytes || bytes > s.Bytes-off {
		panic(fmt.Sprintf("mem: slice of %d bytes at %d out of a span of %d bytes", bytes, off, s.Bytes))
	}
	s.Off, s.Bytes = s.Off+off, bytes
	return s
}

// Mapped is the span's memory as the CPU sees it, nil for device-local memory.
func (s Span) Mapped() []byte {
	m := s.Buffer.Mapped()
	if m == nil {
		return nil
	}
	return m[s.Off : s.Off+s.Bytes : s.Off+s.Bytes]
}

// Arena cuts a buffer into spans, one after another, and frees them all at
// once. It belongs to one goroutine at a time.
type Arena struct {
	buffer *vk.Buffer
	off    int64
}

// NewArena makes an arena of b, which stays the caller's to free.
func NewArena(b *vk.Buffer) *Arena { return &Arena{buffer: b} }

// Alloc takes the next bytes whose address is a multiple of align, a power of
// two. The error is a *BudgetError when too few are left.
func (a *Arena) Alloc(bytes, align int64) (Span, error) {
	if bytes < 0 || align <= 0 || align&(align-1) != 0 {
		return Span{}, fmt.Errorf("take %d bytes aligned to %d from %q: want a size and a power of two", bytes, align, a.buffer.What)
	}
	pad := -(int64(a.buffer.Address) + a.off) & (align - 1)
	if left := a.buffer.Bytes - a.off; pad > left || bytes > left-pad {
		return Span{}, &BudgetError{
			What: fmt.Sprintf("a span of %d bytes", bytes), Heap: fmt.Sprintf("arena %q", a.buffer.What),
			Need: bytes, Have: max(0, left-pad),
		}
	}
	s := Span{Buffer: a.buffer, Off: a.off + pad, Bytes: bytes}
	a.off = s.Off + bytes
	return s, nil
}

// Used is how much of the buffer is taken, padding included.
func (a *Arena) Used() int64 { return a.off }

// Reset frees all spans.
func (a *Arena) Reset() { a.off = 0 }
