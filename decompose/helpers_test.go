package decompose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
)

// shape says what a synthetic model has.
type shape struct {
	layers, experts int
	dim             int64 // multiple of 256
	tied            bool
	seed            uint64
	shards          int // 0 or 1: one file
}

// tensors lists them in an order that is not the execution order.
func (s shape) tensors() []gguf.WriteTensor {
	rng := rand.New(rand.NewPCG(s.seed, 1))
	var all []gguf.WriteTensor
	add := func(name string, typ gguf.Type, dims ...int64) {
		n, err := typ.RowBytes(dims[len(dims)-1])
		if err != nil {
			panic(err)
		}
		for _, d := range dims[:len(dims)-1] {
			n *= d
		}
		all = append(all, gguf.WriteTensor{Name: name, Type: typ, Shape: dims, Data: &noise{rng.Uint64(), n}})
	}
	d := s.dim
	if !s.tied {
		add("output.weight", gguf.Q6_K, 100, d)
	}
	add("rope_freqs.weight", gguf.F32, 5)
	for i := range s.layers {
		p := fmt.Sprintf("blk.%d.", i)
		add(p+"ffn_norm.weight", gguf.F32, d)
		add(p+"attn_q.weight", gguf.Q4_K, d, d)
		add(p+"attn_q.bias", gguf.F32, d)
		add(p+"attn_norm.weight", gguf.F32, d)
		add(p+"own_thing.weight", gguf.F16, 3, 7)
		add(p+"attn_output.weight", gguf.Q8_0, d, d)
		if e := int64(s.experts); e > 0 {
			add(p+"ffn_down_exps.weight", gguf.Q5_K, e, d, d)
			add(p+"ffn_down_exps.bias", gguf.F32, e, d)
			add(p+"ffn_up_exps.weight", gguf.Q4_K, e, d, d)
			add(p+"ffn_gate_exps.weight", gguf.Q4_K, e, d, d)
			add(p+"ffn_gate_exps.scale", gguf.F32, 1) // no part for each expert
			add(p+"ffn_gate_inp.weight", gguf.F32, e, d)
		} else {
			add(p+"ffn_down.weight", gguf.Q6_K, d, d)
		}
	}
	add("output_norm.weight", gguf.F32, d)
	add("token_embd.weight", gguf.Q4_K, 100, d)
	return all
}

// noise is n bytes that a seed decides.
type noise struct {
	seed uint64
	n    int64
}

func (z *noise) Read(p []byte) (int, error) {
	n := int(min(int64(len(p)), z.n))
	var word [8]byte
	for i := 0; i < n; i += 8 {
		z.seed ^= z.seed << 13
		z.seed ^= z.seed >> 7
		z.seed ^= z.seed << 17
		for b := range word {
			word[b] = byte(z.seed >> (8 * b))
		}
		copy(p[i:n], word[:])
	}
	z.n -= int64(n)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (s shape) metadata(t testing.TB) *gguf.Metadata {
	md := gguf.NewMetadata()
	for _, kv := range []struct {
		key string
		v   any
	}{
		{"general.architecture", "llama"}, {"general.name", "synthetic <model> & co"},
		{"llama.block_count", uint32(s.layers)}, {"llama.embedding_length", uint32(s.dim)},
		{"llama.attention.head_count", uint32(4)}, {"llama.attention.head_count_kv", []uint32{1, 2}},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-6)}, {"llama.rope.freq_base", float32(5e5)},
		{"tokenizer.ggml.tokens", []string{"a", "b\x80"}},
	} {
		if err := md.Set(kv.key, kv.v); err != nil {
			t.Fatal(err)
		}
	}
	return md
}

// write makes the GGUF and returns the path of its first file.
func (s shape) write(t testing.TB, dir string) string {
	t.Helper()
	all := s.tensors()
	n := max(s.shards, 1)
	first := ""
	for i := range n {
		path := filepath.Join(dir, "model.gguf")
		md := s.metadata(t)
		if n > 1 {
			path = filepath.Join(dir, fmt.Sprintf("model-%05d-of-%05d.gguf", i+1, n))
			if i > 0 {
				md = gguf.NewMetadata()
			}
			for key, v := range map[string]any{"split.no": uint16(i), "split.count": uint16(n), "split.tensors.count": int32(len(all))} {
				if err := md.Set(key, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		err = gguf.Write(f, md, all[len(all)*i/n:len(all)*(i+1)/n], gguf.WriteOptions{})
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = path
		}
	}
	return first
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// quick is the real thing without syncs, which cost most of a small test's time.
func quick() *hooks {
	h := defaultHooks()
	h.sync = func(*os.File) error { return nil }
	h.syncDir = func(string) error { return nil }
	return h
}

// failAfter makes writes fail once n bytes are out, in the middle of one.
func failAfter(n int64, failure error) *hooks {
	h := quick()
	var mu sync.Mutex
	h.write = func(f *os.File, p []byte) error {
		mu.Lock()
		defer mu.Unlock()
		if int64(len(p)) > n {
			if _, err := f.Write(p[:n]); err != nil {
				return err
			}
			n = 0
			return failure
		}
		n -= int64(len(p))
		_, err := f.Write(p)
		return err
	}
	return h
}

// files reads a folder.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = b
	}
	return all
}

func sameFiles(t testing.TB, got, want map[string][]byte) {
	t.Helper()
	names := slices.Sorted(maps.Keys(got))
	if w := slices.Sorted(maps.Keys(want)); !slices.Equal(names, w) {
		t.Fatalf("found files %q, wanted %q", names, w)
	}
	for _, name := range names {
		if !bytes.Equal(got[name], want[name]) {
			t.Fatalf("%s differs", name)
		}
	}
}

func mustRun(t testing.TB, in, out string, o Options, h *hooks) *pack.Manifest {
	t.Helper()
	m, err := run(context.Background(), in, out, o, h)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// hintOf is what the command line would print under the error.
func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

func wantHint(t testing.TB, err error, part string) {
	t.Helper()
	if h := hintOf(err); !strings.Contains(h, part) {
		t.Errorf("hint of %q: found %q, wanted it to say %q", err, h, part)
	}
}
