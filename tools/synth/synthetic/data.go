package synthetic

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"

	"leat/gguf"
	"leat/gguf/quant"
)

// Making random blocks is slower than a good disk. So a pool of them is made once for
// each type and standard deviation, and a model larger than its pools is written as
// slices of them, each turn through a pool from another offset.
const (
	defaultPoolBytes = 64 << 20
	pieceBytes       = 4 << 20 // of one write, and of progress
)

type poolKey struct {
	t     gguf.Type
	fanIn int64
}

type pool struct {
	want int64 // bytes that all tensors of the key take
	b    []byte
	pos  int // where the next piece begins
	rng  *rand.Rand
}

// source gives tensors their bytes. Tensors must be written in their order, for the
// pools remember where they are.
type source struct {
	o     Options
	pools map[poolKey]*pool
	done  func(n int)
}

func newSource(o Options, tensors []tensor, done func(int)) *source {
	s := &source{o: o, pools: map[poolKey]*pool{}, done: done}
	for _, t := range tensors {
		if t.kind != matrix {
			continue
		}
		k := poolKey{t.typ, t.fanIn()}
		if s.pools[k] == nil {
			s.pools[k] = &pool{rng: rand.New(rand.NewPCG(o.Seed, uint64(k.t)<<32|uint64(k.fanIn)))}
		}
		s.pools[k].want += t.bytes
	}
	return s
}

// data is an io.WriterTo of one tensor's bytes; gguf.Write lets it write by itself.
type data struct {
	s     *source
	t     tensor
	index int // of the tensor in the model
}

// Read is there to make data an io.Reader; nothing calls it.
func (d data) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

func (d data) WriteTo(w io.Writer) (int64, error) {
	if d.t.kind == matrix {
		return d.s.writeMatrix(w, d.t)
	}
	rng := rand.New(rand.NewPCG(d.s.o.Seed, 1<<63|uint64(d.index)))
	values := d.s.values(d.t, rng)
	b := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	n, err := w.Write(b)
	d.s.done(n)
	return int64(n), err
}

func (s *source) writeMatrix(w io.Writer, t tensor) (int64, error) {
	p := s.pools[poolKey{t.typ, t.fanIn()}]
	block := t.typ.BlockBytes()
	if p.b == nil {
		size := min(p.want, s.o.poolBytes/int64(block)*int64(block))
		p.b = make([]byte, size)
		if err := quant.RandomBlocks(t.typ, p.b, p.rng, float32(1/math.Sqrt(float64(t.fanIn())))); err != nil {
			return 0, err
		}
	}
	var written int64
	for written < t.bytes {
		if p.pos == len(p.b) { // another turn: begin anywhere, so that rows fall elsewhere
			p.pos = p.rng.IntN(len(p.b)/block) * block
		}
		piece := p.b[p.pos:min(len(p.b), p.pos+pieceBytes, p.pos+int(t.bytes-written))]
		n, err := w.Write(piece)
		written += int64(n)
		p.pos += n
		s.done(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// values makes an F32 tensor.
func (s *source) values(t tensor, rng *rand.Rand) []float32 {
	n := t.bytes / 4
	v := make([]float32, n)
	switch t.kind {
	case ones:
		for i := range v {
			v[i] = 1
		}
	case bias:
		for i := range v {
			v[i] = 0.1 * float32(rng.NormFloat64())
		}
	case router:
		routerRows(v, int(t.shape[0]), s.o.RouterSkew, rng)
	case ropeFreqs:
		llama3Factors(v, s.o.Shape)
	}
	return v
}

// routerRows makes one row per expert. A longer row has larger logits of either sign,
// so it is chosen more often: with skew S, the expert of rank r has length (r+1)^-S, and
// which expert has which rank is another draw in every layer.
func routerRows(v []float32, experts int, skew float64, rng *rand.Rand) {
	cols := len(v) / experts
	for e, rank := range rng.Perm(experts) {
		length := math.Pow(float64(rank+1), -skew)
		for i := range cols {
			v[e*cols+i] = float32(rng.NormFloat64() * length / math.Sqrt(float64(cols)))
		}
	}
}

// llama3Factors slows the frequencies whose wavelength exceeds what the model was first
// trained on (8192 positions) by the factor, leaves those below a quarter of it, and
// blends between. (Llama 3.1's rope scaling: low_freq_factor 1, high_freq_factor 4.)
func llama3Factors(v []float32, s Shape) {
	const trained, low, high = 8192, 1.0, 4.0
	for i := range v {
		freq := math.Pow(s.RopeFreqBase, -2*float64(i)/float64(s.KeyLength))
		turns := trained * freq / (2 * math.Pi)
		switch {
		case turns > high:
			v[i] = 1
		case turns < low:
			v[i] = float32(s.RopeFactor)
		default:
			smooth := (turns - low) / (high - low)
			v[i] = float32(1 / ((1-smooth)/s.RopeFactor + smooth))
		}
	}
}
