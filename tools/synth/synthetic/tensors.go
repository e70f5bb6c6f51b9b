package synthetic

import (
	"fmt"

	"leat/gguf"
)

type kind int

const (
	matrix    kind = iota // random blocks, standard deviation 1/√fan-in
	ones                  // a norm's weights
	bias                  // small, F32
	router                // F32, each layer's its own, rows as popular as RouterSkew says
	ropeFreqs             // Llama 3's frequency factors
)

const maxTensor = 1 << 48 // bytes; whoever asks for more has mistyped

type tensor struct {
	name  string
	typ   gguf.Type
	shape []int64 // outermost first
	kind  kind
	bytes int64
	taken bool // row by row, as it is: no sum goes over a row
}

// fanIn is the number of values that one output sums over.
func (t tensor) fanIn() int64 {
	if t.taken {
		return 1
	}
	return t.shape[len(t.shape)-1]
}

// tensors lists a model's tensors in execution order.
func (o Options) tensors(m mixture) ([]tensor, error) {
	s := o.Shape
	l := &tensorList{m: m, s: s}
	d, q, kv, head := int64(s.EmbeddingLength), int64(s.HeadCount*s.KeyLength), int64(s.HeadCountKV*s.KeyLength), int64(s.KeyLength)
	l.matrix("token_embd", -1, int64(s.VocabSize), d)
	// As large as what layers add, lest all tokens look alike behind a long context, and choose the same experts.
	l.tensors[0].taken = !s.TiedEmbeddings
	if s.RopeFactor > 0 {
		l.add("rope_freqs.weight", gguf.F32, ropeFreqs, head/2)
	}
	for i := range s.BlockCount {
		blk := func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
		l.add(blk("attn_norm.weight"), gguf.F32, ones, d)
		for _, p := range []struct {
			name string
			rows int64
		}{{"attn_q", q}, {"attn_k", kv}, {"attn_v", kv}} {
			l.matrix(p.name, i, p.rows, d)
			if o.Arch == "qwen2" {
				l.add(blk(p.name+".bias"), gguf.F32, bias, p.rows)
			}
		}
		if o.Arch == "qwen3" || o.Arch == "qwen3moe" {
			l.add(blk("attn_q_norm.weight"), gguf.F32, ones, head)
			l.add(blk("attn_k_norm.weight"), gguf.F32, ones, head)
		}
		l.matrix("attn_output", i, d, q)
		l.add(blk("ffn_norm.weight"), gguf.F32, ones, d)
		if s.ExpertCount == 0 {
			f := int64(s.FeedForwardLength)
			l.matrix("ffn_gate", i, f, d)
			l.matrix("ffn_up", i, f, d)
			l.matrix("ffn_down", i, d, f)
			continue
		}
		e, f := int64(s.ExpertCount), int64(s.ExpertFeedForwardLength)
		l.add(blk("ffn_gate_inp.weight"), gguf.F32, router, e, d)
		l.matrix("ffn_gate_exps", i, e, f, d)
		l.matrix("ffn_up_exps", i, e, f, d)
		l.matrix("ffn_down_exps", i, e, d, f)
	}
	l.add("output_norm.weight", gguf.F32, ones, d)
	if !s.TiedEmbeddings {
		l.matrix("output", -1, int64(s.VocabSize), d)
	}
	return l.tensors, l.err
}

type tensorList struct {
	m       mixture
	s       Shape
	tensors []tensor
	err     error
}

func (l *tensorList) matrix(name string, layer int, shape ...int64) {
	full := name + ".weight"
	if layer >= 0 {
		full = fmt.Sprintf("blk.%d.%s", layer, full)
	}
	l.add(full, fitting(l.m.typeOf(name, layer, l.s), shape[len(shape)-1]), matrix, shape...)
}

func (l *tensorList) add(name string, t gguf.Type, k kind, shape ...int64) {
	n, err := t.RowBytes(shape[len(shape)-1])
	for _, d := range shape[:len(shape)-1] {
		if err == nil && n > maxTensor/d {
			err = fmt.Errorf("found shape %v, want at most %d bytes", shape, int64(maxTensor))
		}
		n *= d
	}
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("tensor %q: %w", name, err)
	}
	l.tensors = append(l.tensors, tensor{name: name, typ: t, shape: shape, kind: k, bytes: n})
}
