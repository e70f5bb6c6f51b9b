package gguf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
)

const (
	magic            = "GGUF"
	maxDims          = 4
	defaultAlignment = 32

	minPair   = 8 + 1 + 4 + 1     // bytes of a key of one letter, the type, a value of one byte
	minTensor = 8 + 1 + 4 + 4 + 8 // bytes of a name of one letter, no dimensions, type, offset
)

// Parse reads the header of one file of size bytes through r. It looks for no other
// shards, and the File reads tensors from r.
func Parse(r io.ReaderAt, size int64) (*File, error) {
	if size < 0 {
		return nil, fmt.Errorf("parse GGUF: found a size of %d bytes, want 0 or more", size)
	}
	rd := newReader(r, size)
	f := &File{Metadata: NewMetadata(), index: map[string]int{}, shards: []shard{{r: r, size: size}}}
	tensors, values := f.parseCounts(rd)
	f.parseMetadata(rd, values)
	f.parseAlignment(rd)
	f.parseTensors(rd, tensors)
	if rd.err != nil {
		return nil, rd.err
	}
	end, err := f.place(rd.off, size)
	if err != nil {
		return nil, err
	}
	if err := checkTail(r, end, size); err != nil {
		return nil, err
	}
	return f, nil
}

// parseCounts reads magic and version, and returns the numbers of tensors and of
// metadata values.
func (f *File) parseCounts(r *reader) (tensors, values uint64) {
	head, _ := r.br.Peek(int(min(r.end, headBytes)))
	var m [4]byte
	if r.end < int64(len(m)) {
		e := badf(0, "magic", fmt.Sprintf("a file of %d bytes", r.end), "%q", magic)
		e.hint = foreign(head)
		r.fail(e)
		return 0, 0
	}
	if r.bytes(m[:], "magic"); r.err == nil && string(m[:]) != magic {
		e := badf(0, "magic", fmt.Sprintf("%q", m[:]), "%q", magic)
		e.hint = foreign(head)
		r.fail(e)
	}
	v := r.u32("version")
	if r.err != nil {
		return 0, 0
	}
	if v != 2 && v != 3 {
		e := badf(4, "version", fmt.Sprint(v), "2 or 3")
		switch {
		case v&0xffff == 0 && v != 0:
			e.Found = fmt.Sprintf("version %d in big-endian order", bits.ReverseBytes32(v))
			e.Wanted = "a little-endian file"
			e.hint = "convert the model for a little-endian machine"
		case v == 1:
			e.hint = "convert the model again with a converter from late 2023 or newer"
		}
		r.fail(e)
		return 0, 0
	}
	f.Version = int(v)
	tensors, values = r.u64("number of tensors"), r.u64("number of metadata values")
	r.has(values, minPair, "number of metadata values")
	r.has(tensors, minTensor, "number of tensors")
	return tensors, values
}

func (f *File) parseMetadata(r *reader, n uint64) {
	for i := uint64(0); i < n && r.err == nil; i++ {
		off := r.off
		key := r.name(fmt.Sprintf("metadata key %d of %d", i+1, n))
		what := fmt.Sprintf("metadata %q", key)
		v := r.value(ValueType(r.u32(what)), what, 0)
		if r.err != nil {
			return
		}
		if _, found := f.values[key]; found {
			r.fail(badf(off, what, "it twice", "it once"))
			return
		}
		if !r.take(pairBytes, what) {
			return
		}
		f.keys = append(f.keys, key)
		f.values[key] = v
	}
}

func (f *File) parseAlignment(r *reader) {
	f.Alignment = defaultAlignment
	v, found := f.values["general.alignment"]
	if r.err != nil || !found {
		return
	}
	a, ok := toInt(v)
	if !ok || a <= 0 || a&(a-1) != 0 || a > math.MaxInt32 {
		r.fail(badf(-1, `metadata "general.alignment"`, fmt.Sprint(v), "a power of two below 2³¹"))
		return
	}
	f.Alignment = a
}

func (f *File) parseTensors(r *reader, n uint64) {
	if !r.has(n, minTensor, "number of tensors") {
		return
	}
	f.Tensors = make([]TensorInfo, 0, min(n, 1024)) // an entry is larger here than in the file
	for i := uint64(0); i < n && r.err == nil; i++ {
		off := r.off
		t := TensorInfo{Name: r.name(fmt.Sprintf("name of tensor %d of %d", i+1, n))}
		what := fmt.Sprintf("tensor %q", t.Name)
		t.Shape = r.shape(what)
		typeOff := r.off
		t.Type = Type(r.u32(what))
		rel := r.u64(what)
		if r.err != nil {
			return
		}
		if _, found := f.index[t.Name]; found {
			r.fail(badf(off, what, "it twice", "it once"))
			return
		}
		if !t.Type.Valid() {
			e := badf(typeOff, what, t.Type.String(), "a tensor type that ggml has now")
			if t.Type.Removed() {
				e.hint = "quantize the model again: this layout was taken out of the format"
			}
			r.fail(e)
			return
		}
		var err error
		if t.Bytes, err = tensorBytes(t.Type, t.Shape); err != nil {
			r.fail(badf(typeOff, what, fmt.Sprintf("%v of shape %v", t.Type, t.Shape), "%s", err))
			return
		}
		if rel > math.MaxInt64 || int64(rel)%f.Alignment != 0 {
			r.fail(badf(typeOff+4, what, fmt.Sprintf("offset %d", rel), "a multiple of the alignment, %d", f.Alignment))
			return
		}
		if !r.take(infoBytes, what) {
			return
		}
		t.Off = int64(rel) // place makes it absolute, when the header's end is known
		f.index[t.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
}

// shape reads the dimensions, innermost first in the file, and returns them outermost
// first. A scalar (no dimensions) reads as (1).
func (r *reader) shape(what string) []int64 {
	off, n := r.off, r.u32(what)
	if r.err == nil && n > maxDims {
		r.fail(badf(off, what, fmt.Sprintf("%d dimensions", n), "at most %d", maxDims))
	}
	if r.err != nil {
		return nil
	}
	if n == 0 {
		return []int64{1}
	}
	s := make([]int64, n)
	for i := len(s) - 1; i >= 0; i-- {
		off = r.off
		d := r.u64(what)
		if r.err == nil && (d == 0 || d > math.MaxInt64) {
			r.fail(badf(off, what, fmt.Sprintf("a dimension of %d", d), "1 to 2⁶³-1"))
		}
		s[i] = int64(d)
	}
	return s
}

// tensorBytes is the size of a tensor; its error says what was wanted.
func tensorBytes(t Type, shape []int64) (int64, error) {
	cols := shape[len(shape)-1]
	if cols%int64(t.BlockSize()) != 0 {
		return 0, fmt.Errorf("rows of whole blocks of %d values", t.BlockSize())
	}
	n, err := t.RowBytes(cols)
	if err != nil {
		return 0, fmt.Errorf("fewer than 2⁶³ bytes")
	}
	for _, d := range shape[:len(shape)-1] {
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("fewer than 2⁶³ bytes")
		}
		n = int64(lo)
	}
	return n, nil
}

// place turns offsets relative to the data into absolute ones, and checks that every
// tensor lies inside the file and apart from the others. Gaps between them are fine.
// It returns where the last one ends.
func (f *File) place(headerEnd, size int64) (end int64, err error) {
	if len(f.Tensors) == 0 {
		return headerEnd, nil // a vocabulary: the file may end with the header
	}
	start := align(headerEnd, f.Alignment)
	whole := start // bytes of the file that the header describes
	for _, t := range f.Tensors {
		if t.Off < math.MaxInt64-t.Bytes-start {
			whole = max(whole, start+t.Off+t.Bytes)
		}
	}
	byOff := make([]*TensorInfo, len(f.Tensors))
	for i := range f.Tensors {
		byOff[i] = &f.Tensors[i]
	}
	slices.SortFunc(byOff, func(a, b *TensorInfo) int { return cmp.Compare(a.Off, b.Off) })
	if err := checkExtents(f.shards[0].r, byOff, start, size, f.Alignment); err != nil {
		return 0, err
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if start > size || t.Off > size-start || t.Bytes > size-start-t.Off {
			e := badf(-1, fmt.Sprintf("tensor %q", t.Name),
				fmt.Sprintf("%d bytes at data offset %d", t.Bytes, t.Off),
				"data inside the file, which has %d bytes of it", max(0, size-start))
			e.hint = fmt.Sprintf("the file has %s of the %s that its header describes: let the download or copy finish, or do it again", sizeOf(size), sizeOf(whole))
			return 0, e
		}
		t.Off += start
	}
	for i := 1; i < len(byOff); i++ {
		if a, b := byOff[i-1], byOff[i]; a.Off+a.Bytes > b.Off {
			return 0, badf(b.Off, fmt.Sprintf("tensor %q", b.Name),
				fmt.Sprintf("it %d bytes into tensor %q", b.Off-a.Off, a.Name), "tensors apart")
		}
	}
	last := byOff[len(byOff)-1]
	return last.Off + last.Bytes, nil
}

func sizeOf(n int64) string {
	switch {
	case n < 100_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

// checkTail refuses a second GGUF after the first: its tensors would be ignored.
func checkTail(r io.ReaderAt, end, size int64) error {
	tail := make([]byte, min(size-end, 1<<12))
	if len(tail) == 0 {
		return nil
	}
	if n, err := r.ReadAt(tail, end); n < len(tail) {
		return fmt.Errorf("read what follows the tensors: %w", err)
	}
	for i := range tail {
		rest := tail[i:]
		if !bytes.HasPrefix(rest, []byte(magic)) || len(rest) < 8 {
			continue
		}
		if v := binary.LittleEndian.Uint32(rest[4:]); v == 2 || v == 3 {
			e := badf(end+int64(i), "data after the last tensor", "the beginning of another GGUF", "one model in a file")
			e.hint = "these are several files in one, as cat makes of the shards of a model: keep shards apart, side by side under the names they were published under, or join them with llama-gguf-split --merge"
			return e
		}
	}
	return nil
}

// align rounds off up to a multiple of a, a power of two below 2³¹; off is a file
// offset below maxHeader or a sum the caller has checked.
func align(off, a int64) int64 { return (off + a - 1) &^ (a - 1) }
