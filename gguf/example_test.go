package gguf_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"leat/gguf"
)

// A file is written, then opened: shapes are outermost first on both sides.
func Example() {
	dir, err := os.MkdirTemp("", "gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "small.gguf")
	if err := write(path); err != nil {
		log.Fatal(err)
	}

	f, err := gguf.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fmt.Println(f.Architecture(), f.Keys())
	for i := range f.Tensors {
		t := &f.Tensors[i]
		data, err := f.ReadTensor(t)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.Name, t.Type, t.Shape, len(data), "bytes")
	}
	// Output:
	// llama [general.architecture llama.block_count]
	// token_embd.weight Q8_0 [4 32] 136 bytes
	// output_norm.weight F32 [32] 128 bytes
}

func write(path string) error {
	md := gguf.NewMetadata()
	if err := md.Set("general.architecture", "llama"); err != nil {
		return err
	}
	if err := md.Set("llama.block_count", uint32(1)); err != nil {
		return err
	}
	w, err := os.Create(path)
	if err != nil {
		return err
	}
	err = gguf.Write(w, md, []gguf.WriteTensor{
		{Name: "token_embd.weight", Type: gguf.Q8_0, Shape: []int64{4, 32}, Data: bytes.NewReader(make([]byte, 4*34))},
		{Name: "output_norm.weight", Type: gguf.F32, Shape: []int64{32}, Data: bytes.NewReader(make([]byte, 4*32))},
	}, gguf.WriteOptions{})
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	return err
}
