package ref

import (
	"math"
	"math/rand/v2"
	"testing"

	"leat/gguf"
	"leat/gguf/quant"
)

// cosSin is the plain table of angles pos * base^(-2i/dim).
func cosSin(pos []uint32, dim int, base float64) []float32 {
	t := make([]float32, 0, len(pos)*dim)
	for _, p := range pos {
		for i := range dim / 2 {
			a := float64(p) * math.Pow(base, -2*float64(i)/float64(dim))
			t = append(t, float32(math.Cos(a)), float32(math.Sin(a)))
		}
	}
	return t
}

func TestRopePairs(t *testing.T) {
	quarter := []float32{0, 1, 0, 1} // a quarter turn for both pairs
	x := mat(6, 1, 2, 3, 4, 5, 6)
	Rope(x, quarter, 6, 4, false)
	near(t, "neighbours", x.Data, []float32{-2, 1, -4, 3, 5, 6}, 0)
	x = mat(6, 1, 2, 3, 4, 5, 6)
	Rope(x, quarter, 6, 4, true)
	near(t, "halves", x.Data, []float32{-3, -4, 1, 2, 5, 6}, 0)
}

func TestRopeKeepsNorms(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, neox := range []bool{false, true} {
		x := randomMat(rng, 3, 2*16)
		before := dot(x.Data, x.Data)
		Rope(x, cosSin([]uint32{0, 7, 4000}, 16, 10000), 16, 16, neox)
		if after := dot(x.Data, x.Data); math.Abs(after-before) > 1e-4 {
			t.Errorf("neox %v: norm² %v became %v", neox, before, after)
		}
	}
}

// q at position a times k at position b depends on a-b alone.
func TestRopeIsRelative(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	q0, k0 := randomMat(rng, 1, 32), randomMat(rng, 1, 32)
	score := func(a, b uint32, neox bool) float64 {
		q, k := NewMat(1, 32), NewMat(1, 32)
		copy(q.Data, q0.Data)
		copy(k.Data, k0.Data)
		Rope(q, cosSin([]uint32{a}, 32, 10000), 32, 32, neox)
		Rope(k, cosSin([]uint32{b}, 32, 10000), 32, 32, neox)
		return dot(q.Data, k.Data)
	}
	for _, neox := range []bool{false, true} {
		near5, far := score(5, 2, neox), score(105, 102, neox)
		if math.Abs(near5-far) > 1e-4 {
			t.Errorf("neox %v: score 3 apart is %v at 5, %v at 105", neox, near5, far)
		}
		if other := score(5, 3, neox); math.Abs(near5-other) < 1e-4 {
			t.Errorf("neox %v: the distance does not matter", neox)
		}
	}
}

// newKV makes a cache of two sequences whose pages lie in no order.
func newKV(typ gguf.Type, headsKV, keyLen, valLen int) *KV {
	kv := &KV{Type: typ, Table: []int{3, 1, 0, 2}, MaxPages: 2, PagePositions: 4, LayerOff: 16,
		HeadsKV: headsKV, KeyLen: keyLen, ValLen: valLen}
	for range 4 {
		kv.Pages = append(kv.Pages, make([]byte, 16+kv.LayerBytes()))
	}
	return kv
}

func TestKVAppendLayout(t *testing.T) {
	kv := newKV(gguf.F16, 2, 8, 16)
	k, v := NewMat(1, 16), NewMat(1, 32)
	k.Data[8+3], v.Data[16+5] = 1.5, 0.1
	KVAppend(kv, k, v, []uint32{6}, []uint32{1}) // position 6 of sequence 1: page 2, its position 2
	at := func(off int) uint16 {
		return uint16(kv.Pages[2][off]) | uint16(kv.Pages[2][off+1])<<8
	}
	if got := at(16 + ((1*4+2)*8+3)*2); got != quant.F32ToF16(1.5) {
		t.Errorf("key: %#x, want 1.5", got)
	}
	if got := at(16 + 2*4*8*2 + ((1*4+2)*16+5)*2); got != quant.F32ToF16(0.1) {
		t.Errorf("value: %#x, want 0.1", got)
	}
}

func TestFlashAttn(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const heads, headsKV, dk, dv = 4, 2, 8, 16
	kv := newKV(gguf.F32, headsKV, dk, dv)
	k, v := randomMat(rng, 6, headsKV*dk), randomMat(rng, 6, headsKV*dv)
	pos, seq := []uint32{0, 1, 2, 3, 4, 5}, []uint32{1, 1, 1, 1, 1, 1}
	KVAppend(kv, k, v, pos, seq)
	seen := []uint32{0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5}
	q, dst := randomMat(rng, 6, heads*dk), NewMat(6, heads*dv)
	FlashAttn(dst, q, kv, seen, seq, heads, 0.3, FlashAttnOptions{})
	for h := range heads {
		near(t, "one position gives its value", dst.Row(0)[h*dv:(h+1)*dv], v.Row(0)[h/2*dv:(h/2+1)*dv], 0)
	}
	// The last row by hand, head 3 (second key/value head).
	p, sum := make([]float64, 6), 0.0
	for i := range p {
		p[i] = math.Exp(0.3 * dot(q.Row(5)[3*dk:], k.Row(i)[dk:]))
		sum += p[i]
	}
	want := make([]float32, dv)
	for d := range want {
		acc := 0.0
		for i := range p {
			acc += p[i] / sum * float64(v.Row(i)[dv+d])
		}
		want[d] = float32(acc)
	}
	near(t, "row 5, head 3", dst.Row(5)[3*dv:], want, 1e-6)
	clear(q.Data)
	FlashAttn(dst, q, kv, seen, seq, heads, 0.3, FlashAttnOptions{})
	mean := (v.Row(0)[0] + v.Row(1)[0] + v.Row(2)[0]) / 3
	near(t, "a zero query takes the mean", dst.Row(2)[:1], []float32{mean}, 1e-6)
}

// What is not seen has no weight, a cap bounds scores, a slope lowers those of far positions, a sink takes weight and gives nothing.
func TestFlashAttnOptions(t *testing.T) {
	kv := newKV(gguf.F32, 1, 8, 8)
	k, v := NewMat(3, 8), NewMat(3, 8)
	for p := range 3 {
		k.Row(p)[0], v.Row(p)[0] = float32(p), float32(1+p)
	}
	pos, seq := []uint32{0, 1, 2}, []uint32{0, 0, 0}
	KVAppend(kv, k, v, pos, seq)
	attend := func(first, last uint32, o FlashAttnOptions) float32 {
		q, dst := NewMat(1, 8), NewMat(1, 8)
		q.Data[0] = 1
		FlashAttn(dst, q, kv, []uint32{first, last}, seq[2:], 1, 1, o)
		return dst.Data[0]
	}
	e := math.Exp(1)
	near(t, "the last 2", []float32{attend(1, 2, FlashAttnOptions{})}, []float32{float32((2 + 3*e) / (1 + e))}, 1e-6)
	near(t, "the last 1", []float32{attend(2, 2, FlashAttnOptions{})}, []float32{3}, 0)
	near(t, "the first 2", []float32{attend(0, 1, FlashAttnOptions{})}, []float32{float32((1 + 2*e) / (1 + e))}, 1e-6)
	near(t, "slope of 1", []float32{attend(0, 2, FlashAttnOptions{Slopes: []float32{1}})}, []float32{float32((1 + 2*e*e + 3*e*e*e*e) / (1 + e*e + e*e*e*e))}, 1e-6)
	near(t, "slope beside a cap", []float32{attend(1, 2, FlashAttnOptions{SoftCap: 1e-9, Slopes: []float32{1}})}, []float32{float32((2 + 3*e) / (1 + e))}, 1e-6)
	c1, c2 := math.Exp(0.5*math.Tanh(2)), math.Exp(0.5*math.Tanh(4))
	near(t, "cap of 0.5", []float32{attend(0, 2, FlashAttnOptions{SoftCap: 0.5})}, []float32{float32((1 + 2*c1 + 3*c2) / (1 + c1 + c2))}, 1e-6)
	near(t, "sink", []float32{attend(2, 2, FlashAttnOptions{Sinks: []float32{2}})}, []float32{1.5}, 1e-6)
	near(t, "sink above all", []float32{attend(0, 2, FlashAttnOptions{Sinks: []float32{1000}})}, []float32{0}, 0)
}

// Blocks have the layout that shaders.FlashAttnArgs documents, and ggml's numbers.
func TestKVBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, typ := range []gguf.Type{gguf.Q8_0, gguf.Q4_0} {
		kv := newKV(typ, 2, 32, 96)
		k, v := randomMat(rng, 1, 64), randomMat(rng, 1, 2*96)
		KVAppend(kv, k, v, []uint32{6}, []uint32{1}) // page 2, its position 2
		row := kv.Val(1, 1, 6)
		got := make([]float32, 96)
		row.load(got)
		ggml := make([]byte, 3*typ.BlockBytes()) // the same blocks in ggml's order
		for b := range 3 {
			block := ggml[b*typ.BlockBytes():][:typ.BlockBytes()]
			copy(block, row.scales[2*b:2*b+2])
			for i := range 32 {
				if typ == gguf.Q8_0 {
					block[2+i] = row.values[32*b+i]
				} else {
					n := row.values[16*b+i/8*4+i%4] >> (i % 8 / 4 * 4) & 15
					block[2+i%16] |= n << (i / 16 * 4)
				}
			}
		}
		want := make([]float32, 96)
		if err := quant.Decode(typ, want, ggml); err != nil {
			t.Fatal(err)
		}
		near(t, typ.String()+" decoded", got, want, 0)
		span := map[gguf.Type]float64{gguf.Q8_0: 1. / 127, gguf.Q4_0: 1. / 8}[typ]
		for b := range 3 {
			high := float64(abs(farthest(v.Row(0)[96+32*b:][:32])))
			for i := range 32 {
				if d := math.Abs(float64(got[32*b+i] - v.Row(0)[96+32*b+i])); d > high*span*1.001 {
					t.Errorf("%v: value %d is %g away, a step is %g", typ, 32*b+i, d, high*span)
				}
			}
		}
	}
}
