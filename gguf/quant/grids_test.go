package quant

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"leat/gguf"
)

// The grids are those of the format: sums of their entries' digits, 2 bits or 3 to a digit, the first value's lowest, as words of 16 bits.
// Blocks that the test data has reach most entries, not all.
func TestGrids(t *testing.T) {
	g := gridsOnce()
	for _, c := range []struct {
		name    string
		entries []uint64
		digits  int // of an entry
		bits    int // of a digit
		digit   func(v byte) uint16
		want    string
	}{
		{"iq2xxs", g.iq2XXS, 8, 2, func(v byte) uint16 { return uint16(v / 17) }, "915952ebc4af8ddb"},
		{"iq2xs", g.iq2XS, 8, 2, func(v byte) uint16 { return uint16(v / 17) }, "f66435966ca8d64e"},
		{"iq2s", g.iq2S, 8, 2, func(v byte) uint16 { return uint16(v / 17) }, "e6e75e121b65e8af"},
		{"iq1", g.iq1, 8, 2, func(v byte) uint16 { return uint16(v) }, "e9ffebfc997ad602"},
		{"iq3xxs", g.iq3XXS, 4, 3, func(v byte) uint16 { return uint16((v - 4) / 8) }, "c9678803c61b2210"},
		{"iq3s", g.iq3S, 4, 3, func(v byte) uint16 { return uint16(v / 2) }, "353274c58dd7d8dc"},
	} {
		h := sha256.New()
		for _, e := range c.entries {
			n := uint16(0)
			for j := range c.digits {
				n |= c.digit(byte(e>>(8*j))) << (j * c.bits)
			}
			h.Write(binary.LittleEndian.AppendUint16(nil, n))
		}
		if got := hex.EncodeToString(h.Sum(nil)[:8]); got != c.want {
			t.Errorf("%s: %d entries of sum %s, want %s", c.name, len(c.entries), got, c.want)
		}
	}
}

// What kernels read is what the decoder does.
func TestGridsForKernels(t *testing.T) {
	g, b := gridsOnce(), Grids()
	if len(b) != 25600 {
		t.Fatalf("%d bytes, want 25600", len(b))
	}
	for at, list := range map[int][]uint64{0: g.iq2XXS, 2048: g.iq2XS, 6144: g.iq2S} {
		for i, e := range list {
			if got := binary.LittleEndian.Uint64(b[at+8*i:]); got != e {
				t.Errorf("byte %d: entry %d is %#x, want %#x", at, i, got, e)
			}
		}
	}
	for at, list := range map[int][]uint64{14336: g.iq3XXS, 15360: g.iq3S} {
		for i, e := range list {
			if got := uint64(binary.LittleEndian.Uint32(b[at+4*i:])); got != e {
				t.Errorf("byte %d: entry %d is %#x, want %#x", at, i, got, e)
			}
		}
	}
	for i, e := range g.iq1 {
		w := binary.LittleEndian.Uint32(b[17408+4*i:])
		if got := uint64(w&0x18181818>>3) | uint64(w>>2&0x18181818>>3)<<32; got != e {
			t.Errorf("entry %d of IQ1 is %#x, want %#x", i, got, e)
		}
	}
}

// Every index of a block stands for its entry: blocks that have all of them.
func TestGridIndices(t *testing.T) {
	g := gridsOnce()
	for _, c := range []struct {
		t       gguf.Type
		entries []uint64
		values  int
		set     func(b []byte, i int) // makes i the index of the first values
	}{
		{gguf.IQ2_XXS, g.iq2XXS, 8, func(b []byte, i int) { b[2] = byte(i) }},
		{gguf.IQ2_XS, g.iq2XS, 8, func(b []byte, i int) { b[2], b[3] = byte(i), byte(i>>8) }},
		{gguf.IQ2_S, g.iq2S, 8, func(b []byte, i int) { b[2], b[66] = byte(i), byte(i>>8) }},
		{gguf.IQ3_XXS, g.iq3XXS, 4, func(b []byte, i int) { b[2] = byte(i) }},
		{gguf.IQ3_S, g.iq3S, 4, func(b []byte, i int) { b[2], b[66] = byte(i), byte(i>>8) }},
	} {
		for i, e := range c.entries {
			b, v := make([]byte, c.t.BlockBytes()), make([]float32, 256)
			b[1] = 0x48 // d is 8, scales are 0
			c.set(b, i)
			if err := Decode(c.t, v, b); err != nil {
				t.Fatal(err)
			}
			scale := map[gguf.Type]float32{gguf.IQ3_XXS: 2, gguf.IQ3_S: 8}[c.t]
			for j := range c.values {
				if want := float32(byte(e>>(8*j))) * max(scale, 1); v[j] != want {
					t.Fatalf("%v, index %d: value %d is %v, want %v", c.t, i, j, v[j], want)
				}
			}
		}
	}
}
