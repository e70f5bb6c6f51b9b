package tiny

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"leat/gguf"
	"leat/gguf/quant"
)

// file is a model being made. It remembers the first fault.
type file struct {
	arch    string
	md      *gguf.Metadata
	tensors []gguf.WriteTensor
	seed    uint64
	err     error
}

// Names lists the models.
func Names() []string {
	var names []string
	for _, m := range models {
		names = append(names, m.name)
	}
	return names
}

// Write writes the model of that name.
func Write(w io.Writer, name string) error {
	i := slices.IndexFunc(models, func(m model) bool { return m.name == name })
	if i < 0 {
		return fmt.Errorf("make model: found name %q, wanted one of %q", name, Names())
	}
	f := &file{arch: models[i].arch, md: gguf.NewMetadata(), seed: hash(name)}
	f.set("general.architecture", f.arch)
	f.set("general.name", name)
	f.set("general.description", "random weights, written by leat's tools/golden")
	models[i].make(f)
	f.vocabulary()
	if f.err == nil {
		f.err = gguf.Write(w, f.md, f.tensors, gguf.WriteOptions{})
	}
	if f.err != nil {
		return fmt.Errorf("make model %s: %w", name, f.err)
	}
	return nil
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

func (f *file) set(key string, v any) {
	if err := f.md.Set(key, v); err != nil && f.err == nil {
		f.err = err
	}
}

// key sets one of the architecture's own keys; an int is written as uint32, a float64 as float32.
func (f *file) key(name string, v any) {
	switch n := v.(type) {
	case int:
		v = uint32(n)
	case float64:
		v = float32(n)
	}
	f.set(f.arch+"."+name, v)
}

// matrix adds random values of standard deviation gain/√(columns).
func (f *file) matrix(name string, t gguf.Type, gain float64, shape ...int64) {
	cols := shape[len(shape)-1]
	n, err := t.RowBytes(cols)
	for _, d := range shape[:len(shape)-1] {
		n *= d
	}
	raw := make([]byte, n)
	if err == nil {
		err = quant.RandomBlocks(t, raw, f.random(name), float32(gain/math.Sqrt(float64(cols))))
	}
	f.add(name, t, raw, err, shape...)
}

// random is a source of its own for each tensor, so that a new one changes no other.
func (f *file) random(name string) *rand.Rand { return rand.New(rand.NewPCG(f.seed, hash(name))) }

// values adds float32s around mean.
func (f *file) values(name string, mean, deviation float64, shape ...int64) {
	rng, n := f.random(name), int64(1)
	for _, d := range shape {
		n *= d
	}
	var raw []byte
	for range n {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(mean+deviation*rng.NormFloat64())))
	}
	f.add(name, gguf.F32, raw, nil, shape...)
}

func (f *file) norm(name string, n int64) { f.values(name+".weight", 1, 0.2, n) }

func (f *file) add(name string, t gguf.Type, raw []byte, err error, shape ...int64) {
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("tensor %q: %w", name, err)
	}
	f.tensors = append(f.tensors, gguf.WriteTensor{Name: name, Type: t, Shape: shape, Data: bytes.NewReader(raw)})
}

// Vocab is the number of tokens of each model: one for each byte, one merge, made-up ones, and the end of text.
const Vocab = 264

// vocabulary is byte-level BPE in which every text is its bytes.
func (f *file) vocabulary() {
	tokens, types := make([]string, 0, Vocab), make([]int32, Vocab)
	next := rune(256)
	for b := range rune(256) {
		if b < 33 || b > 126 && b < 161 || b == 173 { // not printable: the alphabet goes on above Latin-1
			b, next = next, next+1
		}
		tokens = append(tokens, string(b))
	}
	tokens = append(tokens, "Ġt")
	for len(tokens) < Vocab-1 {
		tokens = append(tokens, fmt.Sprintf("Ġword%d", len(tokens)))
	}
	tokens = append(tokens, "<|endoftext|>")
	for i := range types {
		types[i] = 1
	}
	types[Vocab-1] = 3
	f.set("tokenizer.ggml.model", "gpt2")
	f.set("tokenizer.ggml.pre", "qwen2")
	f.set("tokenizer.ggml.tokens", tokens)
	f.set("tokenizer.ggml.token_type", types)
	f.set("tokenizer.ggml.merges", []string{"Ġ t"})
	f.set("tokenizer.ggml.bos_token_id", uint32(Vocab-1))
	f.set("tokenizer.ggml.eos_token_id", uint32(Vocab-1))
	f.set("tokenizer.ggml.add_bos_token", false)
}
