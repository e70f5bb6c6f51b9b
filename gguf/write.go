package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// WriteTensor is one tensor to write.
type WriteTensor struct {
	Name  string
	Type  Type
	Shape []int64   // outermost first
	Data  io.Reader // exactly the tensor's bytes; an io.WriterTo is let write by itself
}

// WriteOptions shapes a file. The zero value is version 3 with the metadata's own
// alignment, or 32.
type WriteOptions struct {
	Version   int   // 2 or 3; 0: 3
	Alignment int64 // a power of two; 0: general.alignment, or 32
}

// Write writes a GGUF file: header, then each tensor's data on its alignment, in order.
func Write(w io.Writer, md *Metadata, tensors []WriteTensor, o WriteOptions) error {
	md, o, err := o.settle(md)
	if err != nil {
		return err
	}
	sizes, err := tensorSizes(tensors)
	if err != nil {
		return err
	}
	cw := &countWriter{w: w}
	bw := bufio.NewWriterSize(cw, 1<<16)
	e := &encoder{w: bw}
	e.header(md, tensors, sizes, o)
	if e.err != nil {
		return fmt.Errorf("write GGUF header: %w", e.err)
	}
	if err := bw.Flush(); err != nil {
		return fmt.Errorf("write GGUF header: %w", err)
	}
	if len(tensors) == 0 {
		return nil
	}
	start := cw.n
	if err := pad(cw, start, o.Alignment); err != nil {
		return fmt.Errorf("write GGUF header: %w", err)
	}
	for i, t := range tensors {
		if err := writeData(cw, t, sizes[i]); err != nil {
			return fmt.Errorf("write tensor %q: %w", t.Name, err)
		}
		if err := pad(cw, cw.n, o.Alignment); err != nil {
			return fmt.Errorf("write tensor %q: %w", t.Name, err)
		}
	}
	return nil
}

// settle fills in defaults and makes general.alignment say what will be true.
func (o WriteOptions) settle(md *Metadata) (*Metadata, WriteOptions, error) {
	const key = "general.alignment"
	if o.Version == 0 {
		o.Version = 3
	}
	if o.Version != 2 && o.Version != 3 {
		return nil, o, fmt.Errorf("write GGUF: found version %d, want 2 or 3", o.Version)
	}
	stated, there := md.Int(key)
	if o.Alignment == 0 {
		o.Alignment = defaultAlignment
		if there {
			o.Alignment = stated
		}
	}
	if a := o.Alignment; a <= 0 || a&(a-1) != 0 || a > math.MaxInt32 {
		return nil, o, fmt.Errorf("write GGUF: found alignment %d, want a power of two below 2³¹", a)
	}
	if (there && stated != o.Alignment) || (!there && o.Alignment != defaultAlignment) {
		md = md.Clone()
		if err := md.Set(key, uint32(o.Alignment)); err != nil {
			return nil, o, err
		}
	}
	return md, o, nil
}

// tensorSizes checks every tensor as the reader would, and gives its bytes.
func tensorSizes(tensors []WriteTensor) ([]int64, error) {
	sizes := make([]int64, len(tensors))
	seen := map[string]bool{}
	for i, t := range tensors {
		bad := func(found, wanted string) error {
			return fmt.Errorf("write tensor %q: found %s, want %s", t.Name, found, wanted)
		}
		if seen[t.Name] {
			return nil, bad("it twice", "it once")
		}
		seen[t.Name] = true
		if len(t.Name) == 0 || len(t.Name) > maxName {
			return nil, bad(fmt.Sprintf("a name of %d bytes", len(t.Name)), fmt.Sprintf("1 to %d", maxName))
		}
		if len(t.Shape) == 0 || len(t.Shape) > maxDims {
			return nil, bad(fmt.Sprintf("%d dimensions", len(t.Shape)), fmt.Sprintf("1 to %d", maxDims))
		}
		for _, d := range t.Shape {
			if d <= 0 {
				return nil, bad(fmt.Sprintf("shape %v", t.Shape), "dimensions of 1 or more")
			}
		}
		if !t.Type.Valid() {
			return nil, bad(t.Type.String(), "a known type")
		}
		var err error
		if sizes[i], err = tensorBytes(t.Type, t.Shape); err != nil {
			return nil, bad(fmt.Sprintf("%v of shape %v", t.Type, t.Shape), err.Error())
		}
		if t.Data == nil {
			return nil, bad("no data", fmt.Sprintf("%d bytes", sizes[i]))
		}
	}
	return sizes, nil
}

func writeData(cw *countWriter, t WriteTensor, size int64) error {
	lw := &limitWriter{w: cw, left: size}
	var err error
	if wt, ok := t.Data.(io.WriterTo); ok {
		_, err = wt.WriteTo(lw)
	} else {
		_, err = io.CopyBuffer(lw, readerOnly{t.Data}, make([]byte, 1<<20))
	}
	if errors.Is(err, errTooLong) {
		return fmt.Errorf("found more than %d bytes of data, want as many", size)
	}
	if err != nil {
		return err
	}
	if lw.left > 0 {
		return fmt.Errorf("found %d bytes of data, want %d", size-lw.left, size)
	}
	return nil
}

var errTooLong = errors.New("too much data")

type limitWriter struct {
	w    io.Writer
	left int64
}

func (l *limitWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, errTooLong
	}
	n, err := l.w.Write(p)
	l.left -= int64(n)
	return n, err
}

// readerOnly hides all but Read, so that io.CopyBuffer uses the buffer we give it.
type readerOnly struct{ io.Reader }

type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// pad writes zeros from off to the next multiple of a.
func pad(w io.Writer, off, a int64) error {
	zeros := make([]byte, min(1<<16, a))
	for left := align(off, a) - off; left > 0; {
		n, err := w.Write(zeros[:min(left, int64(len(zeros)))])
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// encoder writes header fields; the first failure sticks.
type encoder struct {
	w   *bufio.Writer
	err error
}

func (e *encoder) header(md *Metadata, tensors []WriteTensor, sizes []int64, o WriteOptions) {
	e.put([]byte(magic))
	e.put(uint32(o.Version))
	e.put(uint64(len(tensors)))
	e.put(uint64(len(md.keys)))
	for _, k := range md.keys {
		v := made(md.values[k])
		t, _, ok := valueType(v)
		if !ok {
			e.err = fmt.Errorf("metadata %q: found a %T, want a type that GGUF can hold", k, v)
			return
		}
		e.str(k)
		e.put(uint32(t))
		e.value(v)
	}
	off := int64(0)
	for i, t := range tensors {
		e.str(t.Name)
		e.put(uint32(len(t.Shape)))
		for d := len(t.Shape) - 1; d >= 0; d-- {
			e.put(uint64(t.Shape[d]))
		}
		e.put(uint32(t.Type))
		e.put(uint64(off))
		if sizes[i] > math.MaxInt64-off-o.Alignment {
			e.err = fmt.Errorf("tensor %q: found an end beyond 2⁶³, want a smaller file", t.Name)
			return
		}
		off = align(off+sizes[i], o.Alignment)
	}
}

func (e *encoder) put(v any) {
	if e.err == nil {
		e.err = binary.Write(e.w, binary.LittleEndian, v)
	}
}

func (e *encoder) str(s string) {
	e.put(uint64(len(s)))
	if e.err == nil {
		_, e.err = e.w.WriteString(s)
	}
}

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case string:
		e.str(v)
	case []string:
		e.arrayHead(String, len(v))
		for _, s := range v {
			e.str(s)
		}
	case []any:
		e.arrayHead(Array, len(v))
		for _, x := range v {
			e.value(x)
		}
	default:
		t, elem, _ := valueType(v)
		if t == Array {
			e.arrayHead(elem, binary.Size(v)/int(minBytes[elem]))
		}
		e.put(v)
	}
}

func (e *encoder) arrayHead(elem ValueType, n int) {
	e.put(uint32(elem))
	e.put(uint64(n))
}
