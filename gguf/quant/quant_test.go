package quant

import (
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/gguf"
	"leat/tools/testdata"
)

var update = flag.Bool("update", false, "rewrite testdata from the first blocks of the test data's blocks/")

// The blocks that travel with the project: two a type (64 values of the flat types).
func TestDecodeGolden(t *testing.T) {
	for _, ty := range Types() {
		t.Run(ty.String(), func(t *testing.T) {
			base := filepath.Join("testdata", ty.String())
			if *update && !alone(ty) {
				values := max(64, 2*ty.BlockSize())
				copyHead(t, ty, base, values)
			}
			checkBlocks(t, ty, base)
		})
	}
}

func TestDecodeBlocks(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "blocks")
	for _, ty := range Types() {
		if ty == gguf.F32 || alone(ty) {
			continue // F32 has no file there: it is what the values are written in
		}
		t.Run(ty.String(), func(t *testing.T) { checkBlocks(t, ty, filepath.Join(dir, ty.String())) })
	}
}

// alone reports whether the test data has no blocks of a type: gguf-py has no decoder of it. The blocks in testdata are written by hand, each value
// from the format's description, by a script in another language.
func alone(t gguf.Type) bool { return t == gguf.Q1_0 || t == gguf.Q2_0 }

// checkBlocks decodes base.raw and wants base.f32 to the bit; a NaN may be any NaN.
func checkBlocks(t *testing.T, ty gguf.Type, base string) {
	raw, want := readFile(t, base+".raw"), readFile(t, base+".f32")
	got := make([]float32, len(want)/4)
	if err := Decode(ty, got, raw); err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		w := math.Float32frombits(binary.LittleEndian.Uint32(want[4*i:]))
		if math.Float32bits(g) != math.Float32bits(w) && !(g != g && w != w) {
			t.Fatalf("value %d (block %d): %v, want %v", i, i/ty.BlockSize(), g, w)
		}
	}
}

func copyHead(t *testing.T, ty gguf.Type, base string, values int) {
	src := filepath.Join(testdata.Dir(t), "blocks", ty.String())
	var raw, f32 []byte
	if ty == gguf.F32 {
		f32 = readFile(t, filepath.Join(filepath.Dir(src), "F16.f32"))
		raw = f32
	} else {
		raw, f32 = readFile(t, src+".raw"), readFile(t, src+".f32")
	}
	n, err := ty.RowBytes(int64(values))
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{base + ".raw": raw[:n], base + ".f32": f32[:4*values]} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		name        string
		t           gguf.Type
		values      int
		bytes       int
		want        string
		unsupported bool
	}{
		{"a type without decoder", gguf.Q8_1, 32, 36, "Q8_1", true},
		{"an unknown type", gguf.Type(99), 32, 18, "type 99", true},
		{"part of a block", gguf.Q4_K, 128, 72, "multiple of 256", false},
		{"too few bytes", gguf.Q4_0, 64, 35, "found 35 bytes", false},
		{"too many bytes", gguf.Q4_0, 32, 36, "want 18", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Decode(c.t, make([]float32, c.values), make([]byte, c.bytes))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if errors.Is(err, ErrUnsupported) != c.unsupported {
				t.Errorf("wraps ErrUnsupported: %v, want %v", !c.unsupported, c.unsupported)
			}
		})
	}
}

func TestRandomBlocks(t *testing.T) {
	const values = 1 << 17
	for _, ty := range Types() {
		for _, scale := range []float32{0.004, 1, 30} {
			n, err := ty.RowBytes(values)
			if err != nil {
				t.Fatal(err)
			}
			b, v := make([]byte, n), make([]float32, values)
			if err := RandomBlocks(ty, b, rand.New(rand.NewPCG(1, 2)), scale); err != nil {
				t.Fatal(err)
			}
			if err := Decode(ty, v, b); err != nil {
				t.Fatal(err)
			}
			var sum, squares float64
			for i, x := range v {
				if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
					t.Fatalf("%v, scale %v: value %d is %v, want finite", ty, scale, i, x)
				}
				sum += float64(x)
				squares += float64(x) * float64(x)
			}
			mean, std := sum/values, math.Sqrt(squares/values)
			if math.Abs(mean) > 0.06*float64(scale) {
				t.Errorf("%v, scale %v: mean %v, want near 0", ty, scale, mean)
			}
			if r := std / float64(scale); r < 0.95 || r > 1.05 {
				t.Errorf("%v, scale %v: standard deviation %v", ty, scale, std)
			}
		}
	}
}

func TestRandomBlocksRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	if err := RandomBlocks(gguf.Q4_0, make([]byte, 19), rng, 1); err == nil {
		t.Error("19 bytes of Q4_0: no error")
	}
	if err := RandomBlocks(gguf.Q8_K, make([]byte, 292), rng, 1); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Q8_K: error %v, want ErrUnsupported", err)
	}
}

// Any bytes decode without a panic, the same way twice, and block by block as at once.
func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i, ty := range Types() {
		b := make([]byte, 2*ty.BlockBytes())
		if err := RandomBlocks(ty, b, rng, 1); err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
		fill(b, rng) // halves may be NaN or infinite here
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, which uint8, src []byte) {
		ty := Types()[int(which)%len(Types())]
		n, size := ty.BlockSize(), ty.BlockBytes()
		dst := make([]float32, len(src)/size*n)
		if err := Decode(ty, dst, src); (err == nil) != (len(src)%size == 0) {
			t.Fatalf("%v, %d bytes: error %v", ty, len(src), err)
		}
		one := make([]float32, n)
		for i := 0; i+size <= len(src) && len(src)%size == 0; i += size {
			if err := Decode(ty, one, src[i:i+size]); err != nil {
				t.Fatal(err)
			}
			for j, x := range one {
				if math.Float32bits(x) != math.Float32bits(dst[i/size*n+j]) {
					t.Fatalf("%v: value %d is %v alone and %v among others", ty, i/size*n+j, x, dst[i/size*n+j])
				}
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, ty := range Types() {
		b.Run(ty.String(), func(b *testing.B) {
			dst := make([]float32, 1<<14)
			n, _ := ty.RowBytes(int64(len(dst)))
			src := make([]byte, n)
			if err := RandomBlocks(ty, src, rand.New(rand.NewPCG(1, 2)), 1); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(n)
			for b.Loop() {
				if err := Decode(ty, dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRandomBlocks(b *testing.B) {
	for _, ty := range Types() {
		b.Run(ty.String(), func(b *testing.B) {
			n, _ := ty.RowBytes(1 << 14)
			dst, rng := make([]byte, n), rand.New(rand.NewPCG(1, 2))
			b.SetBytes(n)
			for b.Loop() {
				if err := RandomBlocks(ty, dst, rng, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
