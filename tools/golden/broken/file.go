package broken

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"reflect"
	"slices"

	"leat/gguf"
)

// pair is a key of a file, and its value.
type pair struct {
	key   string
	value any
	raw   []byte // both as they stand in the file
}

// newPair makes a pair.
func newPair(key string, value any) pair {
	return pair{key, value, appendValue(appendText(nil, key), value)}
}

// tensor is a tensor of a file.
type tensor struct {
	name  string
	typ   gguf.Type
	shape []int64 // outermost first
	data  []byte
	off   int64 // where the file says that the data begins, instead of where it does; unmoved: it says the truth
}

// unmoved is tensor.off of a tensor that lies where the file says.
const unmoved = -1

// file is the content of a GGUF file that may break the format's rules, unlike what [gguf.Write] writes.
type file struct {
	pairs   []pair
	tensors []tensor
}

// contentOf is the content of a GGUF file.
func contentOf(g *gguf.File) (*file, error) {
	f := &file{}
	for _, key := range g.Keys() {
		v, _ := g.Get(key)
		f.pairs = append(f.pairs, newPair(key, v))
	}
	for i := range g.Tensors {
		t := &g.Tensors[i]
		data, err := g.ReadTensor(t)
		if err != nil {
			return nil, err
		}
		f.tensors = append(f.tensors, tensor{t.Name, t.Type, t.Shape, data, unmoved})
	}
	return f, nil
}

// alignment divides the offsets of tensors.
const alignment = 32

// Image is the bytes of a GGUF file, of which tensors' data are in the memory of the whole file.
type Image struct {
	header []byte   // up to the first tensor's data
	data   [][]byte // of each tensor, not padded
	size   int64
}

// Size is the number of bytes.
func (m *Image) Size() int64 { return m.size }

// ReadAt is io.ReaderAt's.
func (m *Image) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 || off >= m.size {
		return 0, io.EOF
	}
	want := int(min(int64(len(p)), m.size-off))
	clear(p[:want])
	at := int64(0)
	for _, part := range append([][]byte{m.header}, m.data...) {
		if from := max(at, off); from < at+int64(len(part)) && from < off+int64(want) {
			copy(p[from-off:want], part[from-at:])
		}
		at += padded(len(part))
	}
	if want < len(p) {
		err = io.EOF
	}
	return want, err
}

// padded is n rounded up to a multiple of the alignment.
func padded(n int) int64 { return (int64(n) + alignment - 1) &^ (alignment - 1) }

// image is the GGUF file of the content.
func (f *file) image() *Image {
	m := &Image{header: make([]byte, 0, 1<<16)}
	b := append(m.header, "GGUF"...)
	b = binary.LittleEndian.AppendUint32(b, 3)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(f.tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(f.pairs)))
	for i := range f.pairs {
		b = append(b, f.pairs[i].raw...)
	}
	for i := range f.tensors {
		t := &f.tensors[i]
		b = binary.LittleEndian.AppendUint32(appendText(b, t.name), uint32(len(t.shape)))
		for _, d := range slices.Backward(t.shape) {
			b = binary.LittleEndian.AppendUint64(b, uint64(d))
		}
		off := m.size
		if t.off != unmoved {
			off = t.off
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.typ))
		b = binary.LittleEndian.AppendUint64(b, uint64(off))
		m.data = append(m.data, t.data)
		m.size += padded(len(t.data))
	}
	m.header = b
	m.size += padded(len(b))
	return m
}

// fit gives a tensor's data the length that its type and shape want: it is cut, or zeros are added, but no more than a small model has.
func (t *tensor) fit() {
	n, err := t.typ.RowBytes(t.shape[len(t.shape)-1])
	if err != nil {
		return
	}
	for _, d := range t.shape[:len(t.shape)-1] {
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if n = int64(lo); hi != 0 || n < 0 {
			return
		}
	}
	const most = 1 << 24
	if n > most {
		return
	}
	if missing := n - int64(len(t.data)); missing > 0 {
		t.data = append(t.data[:len(t.data):len(t.data)], make([]byte, missing)...)
	}
	t.data = t.data[:n]
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends a value as GGUF stores it, with its type.
func appendValue(b []byte, v any) []byte {
	t := reflect.TypeOf(v)
	if t.Kind() != reflect.Slice {
		return appendContent(binary.LittleEndian.AppendUint32(b, uint32(types[t.Kind()])), v)
	}
	list := reflect.ValueOf(v)
	b = binary.LittleEndian.AppendUint32(b, uint32(gguf.Array))
	b = binary.LittleEndian.AppendUint32(b, uint32(types[t.Elem().Kind()]))
	b = binary.LittleEndian.AppendUint64(b, uint64(list.Len()))
	for i := range list.Len() {
		b = appendContent(b, list.Index(i).Interface())
	}
	return b
}

// appendContent appends a single value without its type.
func appendContent(b []byte, v any) []byte {
	if s, ok := v.(string); ok {
		return appendText(b, s)
	}
	b, err := binary.Append(b, binary.LittleEndian, v)
	if err != nil {
		panic(fmt.Sprintf("write a value of type %T: %v", v, err))
	}
	return b
}

// types is GGUF's types of values, by Go's.
var types = map[reflect.Kind]gguf.ValueType{
	reflect.Uint8: gguf.Uint8, reflect.Int8: gguf.Int8, reflect.Uint16: gguf.Uint16, reflect.Int16: gguf.Int16, reflect.Uint32: gguf.Uint32, reflect.Int32: gguf.Int32,
	reflect.Uint64: gguf.Uint64, reflect.Int64: gguf.Int64, reflect.Float32: gguf.Float32, reflect.Float64: gguf.Float64, reflect.Bool: gguf.Bool, reflect.String: gguf.String,
}
