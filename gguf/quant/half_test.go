package quant

import (
	"math"
	"testing"
)

// exactHalf is a half's value by the definition of the format.
func exactHalf(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exp, frac := int(h>>10&31), float64(h&0x3ff)
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

func TestF16ToF32AllHalves(t *testing.T) {
	for h := range 1 << 16 {
		got, want := F16ToF32(uint16(h)), exactHalf(uint16(h))
		same := float64(got) == want && math.Signbit(float64(got)) == math.Signbit(want)
		if math.IsNaN(want) {
			same = got != got && math.Float32bits(got)>>13&0x3ff == uint32(h)&0x3ff
		}
		if !same {
			t.Fatalf("F16ToF32(%#04x) = %v, want %v", h, got, want)
		}
	}
}

func TestF32ToF16RoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		back := F32ToF16(F16ToF32(uint16(h)))
		if math.IsNaN(exactHalf(uint16(h))) {
			if !math.IsNaN(exactHalf(back)) {
				t.Fatalf("NaN %#04x came back as %#04x", h, back)
			}
			continue
		}
		if back != uint16(h) {
			t.Fatalf("%#04x came back as %#04x", h, back)
		}
	}
}

// Between every two neighbours: the midpoint goes to the even one, and the float32s
// beside the midpoint go to the nearer.
func TestF32ToF16Rounding(t *testing.T) {
	for h := uint16(0); h < 0x7c00; h++ {
		lo := exactHalf(h)
		hi := exactHalf(h + 1)
		if h == 0x7bff {
			hi = 65536 // where the next half would be
		}
		mid := float32((lo + hi) / 2)
		even := h + h&1
		for _, c := range []struct {
			name string
			f    float32
			want uint16
		}{
			{"below the middle", math.Nextafter32(mid, 0), h},
			{"middle", mid, even},
			{"above the middle", math.Nextafter32(mid, math.MaxFloat32), h + 1},
		} {
			for sign, f := range map[uint16]float32{0: c.f, 0x8000: -c.f} {
				if got := F32ToF16(f); got != c.want|sign {
					t.Fatalf("%s of %#04x: F32ToF16(%v) = %#04x, want %#04x", c.name, h, f, got, c.want|sign)
				}
			}
		}
	}
}

func TestF32ToF16Extremes(t *testing.T) {
	for _, c := range []struct {
		name string
		f    float32
		want uint16
	}{
		{"infinity", float32(math.Inf(1)), 0x7c00},
		{"minus infinity", float32(math.Inf(-1)), 0xfc00},
		{"largest float32", math.MaxFloat32, 0x7c00},
		{"smallest float32", math.SmallestNonzeroFloat32, 0},
		{"minus zero", float32(math.Copysign(0, -1)), 0x8000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := F32ToF16(c.f); got != c.want {
				t.Errorf("F32ToF16(%v) = %#04x, want %#04x", c.f, got, c.want)
			}
		})
	}
}
