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
