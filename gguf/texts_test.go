package gguf

import (
	"bytes"
	"slices"
	"sync"
	"testing"
)

// A large array of strings is not made into strings before somebody asks for them; then it is what the file has, for any number of goroutines.
func TestTexts(t *testing.T) {
	want := make([]string, 1000)
	for i := range want {
		want[i] = string(bytes.Repeat([]byte{'x'}, i%300))
	}
	md := NewMetadata()
	if err := md.Set("tokens", want); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, md, nil, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	f, err := Parse(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	e, ok := f.Elements("tokens")
	if e.Len != len(want) || e.Type != String || !ok {
		t.Errorf("%d elements of type %s, %t", e.Len, e.Type, ok)
	}
	if got := e.Strings(5); !slices.Equal(got, want[:5]) {
		t.Errorf("the first are %q", got)
	}
	if list := f.values["tokens"].(*texts).list; list != nil {
		t.Errorf("%d strings were made", len(list))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if got, ok := f.Clone().Strings("tokens"); !ok || !slices.Equal(got, want) {
				t.Error("the strings are other ones")
			}
		})
	}
	all.Wait()
	if e, ok := md.Elements("tokens"); e.Len != len(want) || !ok || !slices.Equal(e.Strings(2000), want) {
		t.Errorf("of strings that were set: %d elements, %t", e.Len, ok)
	}
	if e, ok := md.Elements("none"); e.Len != 0 || ok {
		t.Errorf("of no key: %d elements, %t", e.Len, ok)
	}
}
