package selftest

import (
	"encoding/binary"
	"fmt"
	"math"

	"leat/shaders/ref"
)

// poison is NaN whether read as F32, F16 or BF16. It fills outputs, guards and gaps, so that a value never written
// shows, and so does one read from where nothing is.
const poison = 0x7fc17fc1

// guardBytes lie before and after every buffer.
const guardBytes = 64

// image is the device memory of a case as the host prepares it: buffers with guards between them.
type image struct {
	base  uint64 // the device's address of bytes[0]
	bytes []byte
	used  int
	full  error // an allocation that did not fit
}

// span is a buffer in an image.
type span struct{ off, n int }

func (m *image) reset() { m.used, m.full = 0, nil }

// alloc makes a poisoned buffer. Its address is a multiple of 16 and never of 32: all that kernels may count on.
func (m *image) alloc(n int) span {
	off := m.used + guardBytes
	off += (48 - off%32) % 32
	end := (off + n + guardBytes + 3) &^ 3
	if end > len(m.bytes) {
		m.full = fmt.Errorf("case needs more than the %d bytes of the runner's memory", len(m.bytes))
		return span{0, n}
	}
	for i := m.used; i < end; i += 4 {
		binary.LittleEndian.PutUint32(m.bytes[i:], poison)
	}
	m.used = end
	return span{off, n}
}

func (m *image) addr(s span) uint64 { return m.base + uint64(s.off) }

func (m *image) at(s span) []byte { return m.bytes[s.off : s.off+s.n] }

// data makes a buffer that holds b.
func (m *image) data(b []byte) span {
	s := m.alloc(len(b))
	copy(m.at(s), b)
	return s
}

func (m *image) uint32s(v []uint32) span {
	s := m.alloc(4 * len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(m.at(s)[4*i:], x)
	}
	return s
}

func (m *image) uint64s(v []uint64) span {
	s := m.alloc(8 * len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(m.at(s)[8*i:], x)
	}
	return s
}

// mat makes a buffer that holds a matrix; the gaps of its stride stay poisoned.
func (m *image) mat(x ref.Mat) span {
	s := m.space(x)
	putMat(m.at(s), x)
	return s
}

// space makes a poisoned buffer for a matrix of x's shape.
func (m *image) space(x ref.Mat) span {
	return m.alloc(4 * ((x.Rows-1)*x.Stride + x.Cols))
}

func putMat(b []byte, x ref.Mat) {
	for r := range x.Rows {
		for i, v := range x.Row(r) {
			binary.LittleEndian.PutUint32(b[4*(r*x.Stride+i):], math.Float32bits(v))
		}
	}
}

func floatAt(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

// bytesAt is the n bytes at a device address.
func (m *image) bytesAt(addr uint64, n int) []byte { return m.bytes[addr-m.base:][:n] }
