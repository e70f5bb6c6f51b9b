package quant

import (
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"sync"
)

// grid is a table of the IQ types: an index in a block stands for several values at once. Its entries are the numbers, in ascending
// order, whose digits are the values; the format knows no rule for which numbers are entries.
type grid struct {
	bitmap string // base64: bit n is set where n is an entry
	digits int    // values of an entry; the first is the lowest digit
	levels []byte // what each digit stands for; their count is the base
}

// gridEntries are the entries of all grids. Value j of an entry is its byte j.
type gridEntries struct {
	iq2XXS, iq2XS, iq2S []uint64 // of 8 values
	iq3XXS, iq3S        []uint64 // of 4 values
	iq1                 []uint64 // of 8 values: 0, 1 and 2 for -1, 0 and 1
}

var gridsOnce = sync.OnceValue(func() *gridEntries {
	two, one := []byte{8, 25, 43}, []byte{0, 1, 2}
	return &gridEntries{
		iq2XXS: grid{bitsIQ2_XXS, 8, two}.entries(), iq2XS: grid{bitsIQ2_XS, 8, two}.entries(), iq2S: grid{bitsIQ2_S, 8, two}.entries(),
		iq3XXS: grid{bitsIQ3_XXS, 4, []byte{4, 12, 20, 28, 36, 44, 52, 62}}.entries(), iq3S: grid{bitsIQ3_S, 4, []byte{1, 3, 5, 7, 9, 11, 13, 15}}.entries(),
		iq1: grid{bitsIQ1, 8, one}.entries(),
	}
})

func (g grid) entries() (list []uint64) {
	bitmap, err := base64.RawStdEncoding.DecodeString(g.bitmap)
	if err != nil {
		panic("bitmap of a grid: " + err.Error())
	}
	base := len(g.levels)
	for i, b := range bitmap {
		for ; b != 0; b &= b - 1 {
			entry, n := uint64(0), 8*i+bits.TrailingZeros8(b)
			for j := range g.digits {
				entry |= uint64(g.levels[n%base]) << (8 * j)
				n /= base
			}
			list = append(list, entry)
		}
	}
	return list
}

// Grids are the grids of all types as kernels read them from device memory: those of IQ2_XXS, IQ2_XS and IQ2_S, a byte for each value, then
// those of IQ3_XXS and IQ3_S, then the one of IQ1_S and IQ1_M, a word for each entry: 8 times digit j < 4 is in byte j, 32 times digit j ≥ 4
// in byte j-4.
func Grids() []byte {
	g := gridsOnce()
	var b []byte
	for _, list := range [][]uint64{g.iq2XXS, g.iq2XS, g.iq2S} {
		for _, e := range list {
			b = binary.LittleEndian.AppendUint64(b, e)
		}
	}
	for _, list := range [][]uint64{g.iq3XXS, g.iq3S} {
		for _, e := range list {
			b = binary.LittleEndian.AppendUint32(b, uint32(e))
		}
	}
	for _, e := range g.iq1 {
		b = binary.LittleEndian.AppendUint32(b, uint32(e)<<3|uint32(e>>32)<<5)
	}
	return b
}

// put writes the values of an entry times s, those negative whose bit is set in signs.
func put(dst []float32, entry uint64, signs byte, s float32) {
	for j := range dst {
		v := s * float32(byte(entry>>(8*j)))
		if signs>>j&1 != 0 {
			v = -v
		}
		dst[j] = v
	}
}

// eightSigns adds to 7 signs the eighth, which makes the number of set bits even.
func eightSigns(seven uint32) byte { return byte(seven | uint32(bits.OnesCount32(seven)&1)<<7) }
