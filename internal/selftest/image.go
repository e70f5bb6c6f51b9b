package selftest

import (
	"encoding/binary"
	"fmt"
	"math"

	"leat/shaders/ref"
)

// poison is a NaN, read as F32, F16 or BF16. It fills outputs, guards and gaps, so that an output that was not written is found, and a read outside the
// inputs too.
const poison = 0x7fc17fc1

// guardBytes is the number of poisoned bytes before and after every buffer.
const guardBytes = 64

// image is the memory of a case, prepared by the host and then copied to the device: buffers with guards between them.
type image struct {
	base  uint64 // device address of bytes[0]
	bytes []byte // contents before the run
	used  int    // number of bytes that buffers and guards take so far
	full  error  // error of an allocation that did not fit; nil: all fit
}

// span is the place of a buffer in an [image], the memory of a case: its offset and its size in bytes.
type span struct{ off, n int }

// reset frees all buffers.
func (m *image) reset() { m.used, m.full = 0, nil }

// alloc makes a poisoned buffer of n bytes. Its address is a multiple of 16 but not of 32, because kernels must not need more.
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

// addr is the device address of a buffer.
func (m *image) addr(s span) uint64 { return m.base + uint64(s.off) }

// at is the contents of a buffer before the run.
func (m *image) at(s span) []byte { return m.bytes[s.off : s.off+s.n] }

// data makes a buffer that holds b.
func (m *image) data(b []byte) span {
	s := m.alloc(len(b))
	copy(m.at(s), b)
	return s
}

// uint32s makes a buffer that holds the values v.
func (m *image) uint32s(v []uint32) span {
	s := m.alloc(4 * len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(m.at(s)[4*i:], x)
	}
	return s
}

// uint64s makes a buffer that holds the values v.
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

// putMat writes the rows of a matrix to b. It leaves out the gaps between them.
func putMat(b []byte, x ref.Mat) {
	for r := range x.Rows {
		for i, v := range x.Row(r) {
			binary.LittleEndian.PutUint32(b[4*(r*x.Stride+i):], math.Float32bits(v))
		}
	}
}

// floatAt is the i'th float32 in b, from 0.
func floatAt(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

// bytesAt is the n bytes at a device address.
func (m *image) bytesAt(addr uint64, n int) []byte { return m.bytes[addr-m.base:][:n] }
