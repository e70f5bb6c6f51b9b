package synthetic

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/gguf"
	"leat/gguf/quant"
)

func write(t *testing.T, o Options) *gguf.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := Write(path, o); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(Paths(path, o)[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func values(t *testing.T, f *gguf.File, name string) []float32 {
	t.Helper()
	ti, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %q", name)
	}
	b, err := f.ReadTensor(ti)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(1)
	for _, d := range ti.Shape {
		n *= d
	}
	v := make([]float32, n)
	if err := quant.Decode(ti.Type, v, b); err != nil {
		t.Fatal(err)
	}
	return v
}

func typeOf(t *testing.T, f *gguf.File, name string) gguf.Type {
	t.Helper()
	ti, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no tensor %q", name)
	}
	return ti.Type
}

func deviation(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum / float64(len(v)))
}

// Every architecture in every type: matrices have the spread that keeps activations
// finite, norms are 1.
func TestEveryArchAndType(t *testing.T) {
	types := []string{"q4_k_m", "q5_k_m"}
	for _, ty := range quant.Types() {
		types = append(types, ty.String())
	}
	for _, arch := range Arches() {
		for _, ty := range types {
			t.Run(arch+"/"+ty, func(t *testing.T) {
				f := write(t, Options{Arch: arch, Type: ty, Shape: Shape{BlockCount: 1}})
				for i := range f.Tensors {
					ti := &f.Tensors[i]
					v := values(t, f, ti.Name)
					want := 1 / math.Sqrt(float64(ti.Shape[len(ti.Shape)-1]))
					switch {
					case strings.HasSuffix(ti.Name, "norm.weight"):
						want = 1
					case ti.Name == "token_embd.weight" && slices.ContainsFunc(f.Tensors, func(t gguf.TensorInfo) bool { return t.Name == "output.weight" }):
						want = 1
					case strings.HasSuffix(ti.Name, ".bias"):
						want = 0.1
					}
					if got := deviation(v); got < 0.85*want || got > 1.15*want {
						t.Errorf("%s (%v): deviation %v, want %v", ti.Name, ti.Type, got, want)
					}
				}
			})
		}
	}
}

func TestMixture(t *testing.T) {
	f := write(t, Options{Shape: Shape{BlockCount: 16}})
	for _, c := range []struct {
		name string
		want gguf.Type
	}{
		{"token_embd.weight", gguf.Q4_K}, {"output.weight", gguf.Q6_K}, {"output_norm.weight", gguf.F32},
		{"blk.0.attn_v.weight", gguf.Q6_K}, {"blk.1.ffn_down.weight", gguf.Q6_K}, // the first eighth
		{"blk.2.attn_v.weight", gguf.Q4_K}, {"blk.3.ffn_down.weight", gguf.Q4_K}, {"blk.4.ffn_down.weight", gguf.Q6_K}, // every third
		{"blk.14.attn_v.weight", gguf.Q6_K}, {"blk.15.attn_v.weight", gguf.Q6_K}, // the last eighth
		{"blk.0.attn_q.weight", gguf.Q4_K}, {"blk.0.attn_k.weight", gguf.Q4_K}, {"blk.0.ffn_up.weight", gguf.Q4_K},
	} {
		if got := typeOf(t, f, c.name); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	tied := write(t, Options{Shape: Shape{TiedEmbeddings: true}})
	if got := typeOf(t, tied, "token_embd.weight"); got != gguf.Q6_K {
		t.Errorf("tied token_embd: %v, want Q6_K", got)
	}
	if _, ok := tied.Tensor("output.weight"); ok {
		t.Error("tied: there is an output.weight")
	}
}

// Rows that are not whole blocks take a type in which they are.
func TestOddWidths(t *testing.T) {
	f := write(t, Options{Shape: Shape{EmbeddingLength: 96, HeadCount: 3, HeadCountKV: 1, FeedForwardLength: 172}})
	for name, want := range map[string]gguf.Type{"blk.0.attn_q.weight": gguf.Q5_0, "blk.0.ffn_down.weight": gguf.F16, "output.weight": gguf.Q8_0} {
		if got := typeOf(t, f, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if n, _ := f.Int("llama.attention.key_length"); n != 32 {
		t.Errorf("key length %d, want 32 = 96/3", n)
	}
}

func TestSeedDecidesTheBytes(t *testing.T) {
	sum := func(seed uint64) [32]byte {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := Write(path, Options{Arch: "qwen3moe", Seed: seed}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(b)
	}
	if first, again := sum(1), sum(1); first != again {
		t.Error("the same seed: other bytes")
	}
	if sum(1) == sum(2) {
		t.Error("another seed: the same bytes")
	}
}

func TestShards(t *testing.T) {
	o := Options{Shards: 3, Alignment: 256, Shape: Shape{BlockCount: 2}}
	f := write(t, o)
	if len(f.Paths) != 3 {
		t.Fatalf("opened %q, want 3 files", f.Paths)
	}
	o.Shards = 1
	whole := write(t, o)
	if len(f.Tensors) != len(whole.Tensors) || !slices.Equal(f.Keys(), whole.Keys()) {
		t.Fatalf("%d tensors, want %d; keys %q, want %q", len(f.Tensors), len(whole.Tensors), f.Keys(), whole.Keys())
	}
	seen := map[int]bool{}
	for i, w := range whole.Tensors {
		g := f.Tensors[i]
		seen[g.Shard] = true
		a, err := f.ReadTensor(&g)
		if err != nil {
			t.Fatal(err)
		}
		b, err := whole.ReadTensor(&w)
		if err != nil {
			t.Fatal(err)
		}
		if g.Name != w.Name || !bytes.Equal(a, b) {
			t.Errorf("tensor %d: %q differs from %q in one file", i, g.Name, w.Name)
		}
		if g.Off%256 != 0 {
			t.Errorf("%s at %d, want a multiple of 256", g.Name, g.Off)
		}
	}
	if len(seen) != 3 {
		t.Errorf("tensors in %d shards, want 3", len(seen))
	}
}

func TestRouterSkew(t *testing.T) {
	lengths := func(skew float64, layer int) []float64 {
		f := write(t, Options{Arch: "qwen3moe", RouterSkew: skew})
		v := values(t, f, fmt.Sprintf("blk.%d.ffn_gate_inp.weight", layer))
		var l []float64
		for e := range 8 {
			l = append(l, deviation(v[e*256:(e+1)*256])*16)
		}
		return l
	}
	if even := lengths(0, 0); slices.Max(even) > 1.3*slices.Min(even) {
		t.Errorf("no skew: rows of length %.2f, want about 1", even)
	}
	a, b := lengths(1, 0), lengths(1, 1)
	if slices.Max(a) < 5*slices.Min(a) {
		t.Errorf("skew 1: rows of length %.2f, want 1 to 1/8", a)
	}
	f := write(t, Options{Arch: "qwen3moe"})
	if slices.Equal(values(t, f, "blk.0.ffn_gate_inp.weight"), values(t, f, "blk.1.ffn_gate_inp.weight")) {
		t.Errorf("two layers share a router; lengths %.2f and %.2f", a, b)
	}
}

func TestVocabulary(t *testing.T) {
	tokens, types := vocabulary(151936)
	if len(tokens) != 151936 || len(types) != len(tokens) {
		t.Fatalf("%d tokens, %d types", len(tokens), len(types))
	}
	at := map[string]int{}
	for i, s := range tokens {
		if j, found := at[s]; found {
			t.Fatalf("%q is token %d and %d", s, j, i)
		}
		at[s] = i
	}
	for s, want := range map[string]int{"A": 'A', "~": '~', "Ġ": ' ', "Ċ": '\n', "ÿ": 255, "ł": 160, "Ń": 173} {
		if at[s] != want {
			t.Errorf("%q is token %d, want %d", s, at[s], want)
		}
	}
	for _, m := range merges {
		for _, s := range []string{m[0], m[1], m[0] + m[1]} {
			if _, found := at[s]; !found {
				t.Errorf("merge %q: no token %q", m, s)
			}
		}
	}
	if types[at["<|im_end|>"]] != tokenControl || types[0] != tokenNormal {
		t.Error("the special token is not a control token, or the first byte is one")
	}
}

// Llama 3.1's published factors begin with 1, end with the factor, and rise between.
func TestRopeFactors(t *testing.T) {
	f := write(t, Options{Shape: Shape{RopeFactor: 8, RopeFreqBase: 5e5, KeyLength: 128, BlockCount: 1}})
	v := values(t, f, "rope_freqs.weight")
	if len(v) != 64 || v[0] != 1 || v[63] != 8 || !slices.IsSorted(v) {
		t.Errorf("factors %v, want 64 rising from 1 to 8", v)
	}
}

// A model larger than its pools goes round them, and no two layers come out alike.
func TestLargerThanThePools(t *testing.T) {
	o := Options{Type: "q4_k", Shape: Shape{BlockCount: 16}, poolBytes: 1 << 20}
	var last, total int64
	o.Progress = func(d, t int64) { last, total = d, t }
	f := write(t, o)
	if last != total || total == 0 {
		t.Errorf("progress ended at %d of %d", last, total)
	}
	var sum int64
	seen := map[[32]byte]string{}
	for i := range f.Tensors {
		ti := &f.Tensors[i]
		sum += ti.Bytes
		if ti.Type != gguf.Q4_K {
			continue
		}
		b, err := f.ReadTensor(ti)
		if err != nil {
			t.Fatal(err)
		}
		k := sha256.Sum256(b)
		if was, found := seen[k]; found {
			t.Errorf("%s has the bytes of %s", ti.Name, was)
		}
		seen[k] = ti.Name
	}
	if sum != total {
		t.Errorf("%d bytes of tensors, progress said %d", sum, total)
	}
	if sum < o.poolBytes*3 {
		t.Errorf("%d bytes of tensors: not much larger than a pool", sum)
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"architecture", Options{Arch: "gpt2"}, `architecture: found "gpt2"`},
		{"preset", Options{Preset: "9t"}, `preset: found "9t"`},
		{"type", Options{Type: "q8_1"}, `quantisation: found "q8_1"`},
		{"vocabulary", Options{Shape: Shape{VocabSize: 100}}, "vocabulary: found 100 tokens"},
		{"heads", Options{Shape: Shape{HeadCount: 3}}, "heads: found 3 for 2"},
		{"layers", Options{Shape: Shape{BlockCount: -1}}, "layers: found -1"},
		{"experts", Options{Arch: "qwen3moe", Shape: Shape{ExpertUsedCount: 9}}, "experts: found 9 of 8"},
		{"dense shape for experts", Options{Arch: "qwen3moe", Preset: "8b"}, "experts: found 0 of 0"},
		{"a tensor without end", Options{Shape: Shape{VocabSize: 1 << 24, EmbeddingLength: 1 << 24, FeedForwardLength: 1 << 24}, Type: "f32"}, "want at most"},
		{"shards", Options{Shards: -1}, "shards: found -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			err := Write(filepath.Join(dir, "m.gguf"), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Failing half-way leaves nothing.
func TestFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	if err := os.Mkdir(path, 0o755); err != nil { // so that the last step, the renaming, fails
		t.Fatal(err)
	}
	if err := Write(path, Options{}); err == nil {
		t.Fatal("no error")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v (error %v)", left, err)
	}
}

// Each preset is found by the name that the list gives it.
func TestPresetNames(t *testing.T) {
	for _, name := range Presets() {
		o, err := Options{Preset: name}.settle()
		if err != nil || o.Arch+"/" != name[:len(o.Arch)+1] {
			t.Errorf("%s: %v, architecture %q", name, err, o.Arch)
		}
	}
}

func TestPresetsHaveTheirPublishedSize(t *testing.T) {
	for _, c := range []struct {
		arch, preset string
		params       float64
	}{
		{"llama", "8b", 8.03e9}, {"llama", "70b", 70.6e9}, {"llama", "1b", 1.24e9}, {"mixtral", "8x7b", 46.7e9}, {"qwen2", "7b", 7.62e9}, {"qwen2", "0.5b", 0.494e9},
		{"qwen3", "0.6b", 0.596e9}, {"qwen3", "8b", 8.19e9}, {"qwen3", "32b", 32.8e9}, {"qwen3moe", "30b-a3b", 30.5e9},
	} {
		o, err := Options{Arch: c.arch, Preset: c.preset, Type: "f16"}.settle()
		if err != nil {
			t.Fatal(err)
		}
		ts, err := o.tensors(mixture{base: gguf.F16})
		if err != nil {
			t.Fatal(err)
		}
		var n float64
		for _, ti := range ts {
			n += float64(ti.bytes) / float64(ti.typ.BlockBytes())
		}
		if r := n / c.params; r < 0.99 || r > 1.01 {
			t.Errorf("%s/%s: %.3g parameters, want %.3g", c.arch, c.preset, n, c.params)
		}
	}
}

// A hollow file has the same tensors in the same places, whatever its size.
func TestHollow(t *testing.T) {
	o := Options{Arch: "llama", Preset: "8b"}
	o.Hollow = true
	f := write(t, o)
	o = Options{Arch: "llama"}
	full := write(t, o)
	o.Hollow = true
	hollow := write(t, o)
	if n := len(f.Tensors); n < 290 || f.Tensors[n-1].Off < 4<<30 {
		t.Errorf("8b: %d tensors, the last at %d", n, f.Tensors[n-1].Off)
	}
	for i := range full.Tensors {
		if a, b := full.Tensors[i], hollow.Tensors[i]; a.Name != b.Name || a.Off != b.Off || a.Bytes != b.Bytes {
			t.Errorf("found %+v, want %+v", b, a)
		}
	}
}
