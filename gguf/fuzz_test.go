package gguf

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

// Any bytes give a file or an ErrFormat, without a panic. A file's tensors can be read,
// and what Write makes of it parses to the same.
func FuzzParse(f *testing.F) {
	for _, version := range []int{2, 3} {
		f.Add(sample(f, version, everyValue(f, 5)))
		f.Add(sample(f, version, NewMetadata()))
	}
	f.Add(head(1, 1).str("general.alignment").u32(4).u32(1).tensor("a", Q8_0, 0, 32, 1).zeros(34).Bytes())
	f.Add(deep(8).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v does not wrap ErrFormat", err)
			}
			return
		}
		var tensors []WriteTensor
		for i := range file.Tensors {
			ti := &file.Tensors[i]
			data, err := file.ReadTensor(ti)
			if err != nil {
				t.Fatal(err)
			}
			tensors = append(tensors, WriteTensor{ti.Name, ti.Type, ti.Shape, bytes.NewReader(data)})
		}
		if file.Alignment > 1<<16 {
			return // written again it would be mostly padding
		}
		var again bytes.Buffer
		if err := Write(&again, file.Metadata, tensors, WriteOptions{Version: file.Version}); err != nil {
			t.Fatal(err)
		}
		back, err := Parse(bytes.NewReader(again.Bytes()), int64(again.Len()))
		if err != nil {
			t.Fatal(err)
		}
		sameFile(t, back, file)
	})
}

func sameFile(t *testing.T, got, want *File) {
	if !reflect.DeepEqual(got.Keys(), want.Keys()) || len(got.Tensors) != len(want.Tensors) {
		t.Fatalf("keys %q, %d tensors, want %q, %d", got.Keys(), len(got.Tensors), want.Keys(), len(want.Tensors))
	}
	// NaN differs from itself; the bytes of two encodings tell.
	if !bytes.Equal(encoded(t, got.Metadata), encoded(t, want.Metadata)) {
		t.Fatal("metadata differ")
	}
	for i, g := range got.Tensors {
		w := want.Tensors[i]
		g.Off = w.Off
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("tensor %+v, want %+v", g, w)
		}
		a, err := got.ReadTensor(&got.Tensors[i])
		b, err2 := want.ReadTensor(&want.Tensors[i])
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(a, b) {
			t.Fatalf("tensor %q: other bytes (error %v)", g.Name, err)
		}
	}
}

func encoded(t *testing.T, md *Metadata) []byte {
	var b bytes.Buffer
	if err := Write(io.Writer(&b), md, nil, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
