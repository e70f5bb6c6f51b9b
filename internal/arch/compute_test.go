package arch_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/gguf/quant"
	"leat/internal/arch"
	"leat/tools/testdata"
)

// computer computes a model's operations in float64, one value after the other, for all rows of one sequence. It shares nothing with the kernels.
type computer struct {
	t       *testing.T
	m       *pack.Model
	h       *arch.Hyper
	layer   int
	rows    int
	values  map[arch.Value][]float64
	keys    []float64
	vals    []float64
	chosen  [][]int
	tensors map[string][]float64
}

// The logits of models that Hugging Face's converter wrote, computed from operations alone, are those of transformers.
func TestComputed(t *testing.T) {
	for _, name := range []string{"llama", "gpt2", "starcoder", "starcoder2", "bloom", "nemotron", "jais2", "stablelm", "olmo", "phi2", "falcon", "cohere", "cohere2", "arcee", "apertus", "granite", "granitemoe",
		"ministral3", "minicpm3"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(testdata.Dir(t), "hf", name)
			m, err := pack.Open(path + ".gguf")
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			h, err := arch.Read(m)
			if err != nil {
				t.Fatal(err)
			}
			var golden struct{ Tokens []int }
			text, err := os.ReadFile(path + ".json")
			if err == nil {
				err = json.Unmarshal(text, &golden)
			}
			if err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(path + ".f32")
			if err != nil {
				t.Fatal(err)
			}
			c := &computer{t: t, m: m, h: h, rows: len(golden.Tokens), values: map[arch.Value][]float64{}, tensors: map[string][]float64{}}
			got := c.logits(golden.Tokens)
			worst := 0.0
			for r := range c.rows {
				var off, all float64
				for i := range h.VocabSize {
					want := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*(r*h.VocabSize+i):])))
					d := got[r*h.VocabSize+i] - want
					off, all = off+d*d, all+want*want
				}
				worst = max(worst, math.Sqrt(off/all))
			}
			if !(worst < 1e-5) {
				t.Errorf("the worst row is off by %.1e", worst)
			}
		})
	}
}

// logits computes the logits of all tokens.
func (c *computer) logits(tokens []int) []float64 {
	embd, d := c.tensor(arch.TokenEmbd), c.h.EmbeddingLength
	for _, id := range tokens {
		c.values[arch.X] = append(c.values[arch.X], embd[id*d:(id+1)*d]...)
	}
	c.all(c.h.Input(c.m.Has))
	for c.layer = range c.h.BlockCount {
		c.all(c.h.Layer(c.layer, c.m.Has))
	}
	c.layer = 0
	c.all(c.h.Output(c.m.Has))
	c.values[arch.Logits] = product(c.values[arch.Hidden], c.tensor(c.h.Head()), d)
	c.all(c.h.LogitOps(c.m.Has))
	return c.values[arch.Logits]
}

// tensor reads a tensor; nil for the name "".
func (c *computer) tensor(name string) []float64 {
	if name == "" {
		return nil
	}
	if _, ok := c.tensors[name]; !ok {
		x, _, ok := c.m.Tensor(name)
		if !ok {
			c.t.Fatalf("tensor %q is missing", name)
		}
		c.tensors[name] = c.decode(x)
	}
	return c.tensors[name]
}

func (c *computer) decode(x *pack.Tensor) []float64 {
	n := 1
	for _, s := range x.Shape {
		n *= int(s)
	}
	raw, floats, wide := make([]byte, x.Bytes), make([]float32, n), make([]float64, n)
	err := c.m.ReadAt(x.File, raw, x.Off)
	if err == nil {
		err = quant.Decode(x.Type, floats, raw)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	for i, f := range floats {
		wide[i] = float64(f)
	}
	return wide
}

// product is the rows of a, of the given width, times the transposed matrix w.
func product(a, w []float64, width int) []float64 {
	var out []float64
	for r := 0; r < len(a); r += width {
		for i := 0; i < len(w); i += width {
			sum := 0.0
			for k := range width {
				sum += a[r+k] * w[i+k]
			}
			out = append(out, sum)
		}
	}
	return out
}

func (c *computer) all(ops []arch.Op) {
	for i := range ops {
		c.one(&ops[i])
	}
}

// fresh makes room for o.Dst, and keeps what it holds.
func (c *computer) fresh(o *arch.Op) []float64 {
	n := c.rows * c.h.Width(c.layer, o.Dst)
	dst := make([]float64, n)
	copy(dst, c.values[o.Dst])
	c.values[o.Dst] = dst
	return dst
}

// factor is o.Factor, 1 for 0.
func factor(o *arch.Op) float64 {
	if o.Factor == 0 {
		return 1
	}
	return float64(o.Factor)
}

// one computes an operation.
func (c *computer) one(o *arch.Op) {
	a, b, w := c.values[o.A], c.values[o.B], c.tensor(o.Weight)
	switch o.Kind {
	case arch.RMSNorm, arch.LayerNorm:
		c.norm(o)
	case arch.MulMat:
		in, out := c.h.Width(c.layer, o.A), c.h.Width(c.layer, o.Dst)
		c.values[o.Dst] = product(a, w[o.Row*in:(o.Row+out)*in], in)
	case arch.KVAppend:
		c.keys, c.vals = slices.Clone(a), slices.Clone(b)
	case arch.Attention:
		c.attention(o)
	case arch.RopeHeads:
		c.rope(o)
	case arch.Route:
		c.route(o)
	case arch.Experts:
		c.experts(o)
	case arch.HeadCopy:
		dst := c.fresh(o)
		from, to := len(a)/c.rows/o.Heads, len(dst)/c.rows/o.Heads
		for i := range c.rows * o.Heads {
			at := i
			if o.OneHead {
				at, from = i/o.Heads, len(a)/c.rows
			}
			copy(dst[i*to+o.Off:i*to+o.Off+o.Cols], a[at*from+o.OffA:])
		}
	case arch.KeepLogitRows:
	default:
		width := c.h.Width(c.layer, o.Dst)
		dst := c.fresh(o)
		for i := range dst {
			dst[i] = c.elementwise(o, i, i/width, i%width, a, b, w, dst[i])
		}
	}
}

// elementwise is value i of o.Dst, in the given row and column, which was old.
func (c *computer) elementwise(o *arch.Op, i, row, col int, a, b, w []float64, old float64) float64 {
	switch o.Kind {
	case arch.Bias:
		return old + w[o.Row+col]
	case arch.AddRows:
		return old + w[i]
	case arch.Add:
		return a[i] + factor(o)*b[i]
	case arch.Scale:
		return factor(o) * a[i]
	case arch.ScaleRows:
		return float64(c.h.RowScale.At(row)) * a[i]
	case arch.ScaleLogits:
		return factor(o) * a[i]
	case arch.SwiGLU:
		return a[i] / (1 + math.Exp(-a[i])) * b[i]
	case arch.SumExperts:
		sum, used := 0.0, c.h.Experts.Used
		if o.B != arch.None {
			sum = b[i]
		}
		for k := range used {
			sum += c.values[arch.ChosenWeights][row*used+k] * a[(row*used+k)*c.h.EmbeddingLength+col]
		}
		return sum
	case arch.Act:
		return activate(o, a[i])
	}
	c.t.Fatalf("operation of kind %d", o.Kind)
	return 0
}

func activate(o *arch.Op, x float64) float64 {
	switch p := o.Params; o.Activation {
	case arch.GELU:
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case arch.GELUErf:
		return x / 2 * (1 + math.Erf(x/math.Sqrt2))
	case arch.ReLU2:
		return max(x, 0) * max(x, 0)
	case arch.Clamp:
		return max(float64(p[0]), min(float64(p[1]), x))
	default: // XIELU
		up, down, line := float64(p[0]), float64(p[1]), float64(p[2])
		if x > 0 {
			return up*x*x + line*x
		}
		return down*(math.Expm1(min(x, float64(p[3])))-x) + line*x
	}
}

func (c *computer) norm(o *arch.Op) {
	a, w, bias := c.values[o.A], c.tensor(o.Weight), c.tensor(o.Weight2)
	out := slices.Clone(a)
	stride := len(a) / c.rows / o.Heads
	for at := 0; at < len(a); at += stride {
		x := out[at : at+o.Cols]
		mean, square, eps := 0.0, 0.0, float64(c.h.RMSEpsilon)
		if o.Kind == arch.LayerNorm {
			eps = float64(c.h.NormEpsilon)
			for _, v := range x {
				mean += v / float64(o.Cols)
			}
		}
		for _, v := range x {
			square += (v - mean) * (v - mean) / float64(o.Cols)
		}
		for i := range x {
			x[i] = (x[i] - mean) / math.Sqrt(square+eps)
			if w != nil {
				x[i] *= w[i]
			}
			if bias != nil {
				x[i] += bias[i]
			}
		}
	}
	c.values[o.Dst] = out
}

func (c *computer) rope(o *arch.Op) {
	r, x := &c.h.Ropes[o.Rope], c.values[o.Dst]
	freqs, scale := r.Freqs(c.rows), r.AttnFactor
	stride := len(x) / c.rows / o.Heads
	for i := range c.rows * o.Heads {
		head := x[i*stride+o.Off:]
		for k, f := range freqs {
			p, q := 2*k, 2*k+1
			if r.Neox {
				p, q = k, k+len(freqs)
			}
			sin, cos := math.Sincos(float64(i/o.Heads) * f)
			head[p], head[q] = scale*(head[p]*cos-head[q]*sin), scale*(head[p]*sin+head[q]*cos)
		}
	}
}

func (c *computer) attention(o *arch.Op) {
	s, q := &c.h.Layers[c.layer], c.values[o.A]
	dst := c.fresh(o)
	clear(dst)
	for i := range c.rows * s.HeadCount {
		row, head := i/s.HeadCount, i%s.HeadCount
		kv := head / (s.HeadCount / s.HeadCountKV)
		first := 0
		if n := c.h.Masks[o.Mask].Window; n > 0 {
			first = max(0, row-n+1)
		}
		var weights []float64
		sum := 0.0
		for at := first; at <= row; at++ {
			score := 0.0
			for k := range s.KeyLength {
				score += q[i*s.KeyLength+k] * c.keys[(at*s.HeadCountKV+kv)*s.KeyLength+k]
			}
			e := math.Exp(score*float64(c.h.AttentionScale) - slope(c.h, s.HeadCount, head)*float64(row-at))
			weights, sum = append(weights, e), sum+e
		}
		for k := range s.ValueLength {
			for j, e := range weights {
				dst[i*s.ValueLength+k] += e / sum * c.vals[((first+j)*s.HeadCountKV+kv)*s.ValueLength+k]
			}
		}
	}
}

// slope is what ALiBi subtracts from a head's scores for each position of distance, of a power of two of heads.
func slope(h *arch.Hyper, heads, head int) float64 {
	if h.ALiBi == 0 {
		return 0
	}
	return math.Exp2(-h.ALiBi * float64(head+1) / float64(heads))
}

// route computes a router with softmax, whose weights are normalised.
func (c *computer) route(o *arch.Op) {
	x := c.h.Experts
	if x.Gating != arch.SoftMax || !x.Normalise || o.Weight != "" {
		c.t.Fatalf("router %+v", x)
	}
	c.chosen, c.values[arch.ChosenWeights] = nil, nil
	for row := range c.rows {
		scores := c.values[o.A][row*x.Count : (row+1)*x.Count]
		ids := make([]int, x.Count)
		for i := range ids {
			ids[i] = i
		}
		slices.SortStableFunc(ids, func(i, j int) int { return int(math.Copysign(1, scores[j]-scores[i])) })
		sum := 0.0
		for _, id := range ids[:x.Used] {
			sum += math.Exp(scores[id])
		}
		for _, id := range ids[:x.Used] {
			c.values[arch.ChosenWeights] = append(c.values[arch.ChosenWeights], math.Exp(scores[id])/sum*float64(x.Scale))
		}
		c.chosen = append(c.chosen, ids[:x.Used])
	}
}

// experts computes gated experts: their gate, their other product, SwiGLU and their output.
func (c *computer) experts(o *arch.Op) {
	d, units := c.h.EmbeddingLength, c.m.Experts(c.layer)
	matrix := func(id int, part string) []float64 {
		for i := range o.Ops {
			if x, ok := units[id].Tensor(o.Ops[i].Weight); ok && strings.Contains(x.Name, part) {
				return c.decode(x)
			}
		}
		c.t.Fatalf("expert %d has no %s", id, part)
		return nil
	}
	c.values[arch.ExpertOut] = nil
	for row, ids := range c.chosen {
		x := c.values[o.A][row*d : (row+1)*d]
		for _, id := range ids {
			gate, up := product(x, matrix(id, "ffn_gate"), d), product(x, matrix(id, "ffn_up"), d)
			for i := range gate {
				gate[i] *= up[i] / (1 + math.Exp(-gate[i]))
			}
			c.values[arch.ExpertOut] = append(c.values[arch.ExpertOut], product(gate, matrix(id, "ffn_down"), len(gate))...)
		}
	}
}
