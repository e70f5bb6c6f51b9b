package ref

import (
	"encoding/binary"
	"math"

	"leat/gguf"
	"leat/gguf/quant"
)

// KV is a paged key/value cache of one layer, laid out as the device has it.
//
// A page holds PagePositions positions; from LayerOff on the planes of K, one for each of HeadsKV heads, then those of V. A
// plane has the values of every position, (PagePositions, Dk) or (PagePositions, Dv): floats, halves, or the whole numbers
// of blocks of 32; then the scales of blocks, halves, of each position an even number.
// Position p of sequence s is in page Table[s*MaxPages + p/PagePositions].
type KV struct {
	Type           gguf.Type // F16, F32, Q8_0 or Q4_0
	Pages          [][]byte
	Table          []int // (B, MaxPages) index into Pages
	MaxPages       int
	PagePositions  int
	LayerOff       int // bytes
	HeadsKV        int
	KeyLen, ValLen int
}

// Row is one head's key or value at one position.
type Row struct {
	typ    gguf.Type
	values []byte
	scales []byte // of blocks
}

// rowBytes is what n values take, and what their scales take.
func (kv *KV) rowBytes(n int) (values, scales int) {
	switch kv.Type {
	case gguf.F32:
		return 4 * n, 0
	case gguf.Q8_0:
		return n, (n + 63) / 64 * 4
	case gguf.Q4_0:
		return n / 2, (n + 63) / 64 * 4
	}
	return 2 * n, 0
}

func (kv *KV) planeBytes(n int) int {
	values, scales := kv.rowBytes(n)
	return kv.PagePositions * (values + scales)
}

// LayerBytes is what one layer takes of a page.
func (kv *KV) LayerBytes() int {
	return kv.HeadsKV * (kv.planeBytes(kv.KeyLen) + kv.planeBytes(kv.ValLen))
}

// Key is the stored key of one head at one position.
func (kv *KV) Key(seq, head, pos int) Row {
	return kv.row(seq, pos, kv.LayerOff+head*kv.planeBytes(kv.KeyLen), kv.KeyLen)
}

// Val is the stored value of one head at one position.
func (kv *KV) Val(seq, head, pos int) Row {
	return kv.row(seq, pos, kv.LayerOff+kv.HeadsKV*kv.planeBytes(kv.KeyLen)+head*kv.planeBytes(kv.ValLen), kv.ValLen)
}

func (kv *KV) row(seq, pos, plane, n int) Row {
	page := kv.Pages[kv.Table[seq*kv.MaxPages+pos/kv.PagePositions]]
	slot := pos % kv.PagePositions
	values, scales := kv.rowBytes(n)
	at, of := plane+slot*values, plane+kv.PagePositions*values+slot*scales
	return Row{kv.Type, page[at : at+values], page[of : of+scales]}
}

// KVAppend stores row r of k and v at position pos[r] of sequence seq[r], rounded to the cache's type.
func KVAppend(kv *KV, k Mat /* (T, Hkv*Dk) */, v Mat /* (T, Hkv*Dv) */, pos, seq []uint32 /* (T) */) {
	for r := range k.Rows {
		for h := range kv.HeadsKV {
			kv.Key(int(seq[r]), h, int(pos[r])).store(k.Row(r)[h*kv.KeyLen : (h+1)*kv.KeyLen])
			kv.Val(int(seq[r]), h, int(pos[r])).store(v.Row(r)[h*kv.ValLen : (h+1)*kv.ValLen])
		}
	}
}

func (w Row) store(src []float32) {
	switch w.typ {
	case gguf.F16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(w.values[2*i:], quant.F32ToF16(v))
		}
	case gguf.F32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(w.values[4*i:], math.Float32bits(v))
		}
	default:
		w.storeBlocks(src)
	}
}

func (w Row) storeBlocks(src []float32) {
	clear(w.values)
	for b := range len(w.scales) / 2 {
		block := make([]float32, 32) // zeros where there is none
		if 32*b < len(src) {
			copy(block, src[32*b:])
		}
		high := farthest(block)
		scale := blockScale(w.typ, high)
		if !allFinite(block) { // nor is what comes of it
			high, scale = 0, float32(math.NaN())
		}
		binary.LittleEndian.PutUint16(w.scales[2*b:], quant.F32ToF16(scale))
		if 32*b >= len(src) {
			continue
		}
		for i, v := range block {
			if w.typ == gguf.Q8_0 {
				w.values[32*b+i] = byte(nearest8(v, high))
			} else {
				w.values[16*b+i/8*4+i%4] |= nearest4(v, high) << (i % 8 / 4 * 4)
			}
		}
	}
}

// farthest is the value farthest from 0, the first of equals.
func farthest(x []float32) (high float32) {
	for _, v := range x {
		if abs(v) > abs(high) {
			high = v
		}
	}
	return high
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

// blockScale is ggml's: the farthest value is 127 times, or -8 times, that.
func blockScale(t gguf.Type, high float32) float32 {
	if t == gguf.Q8_0 {
		return abs(high) * float32(1.0/127)
	}
	return high * -0.125
}

// nearest8 is x * 127 / |high| to the nearest whole number, halves away from 0. Products decide, not a quotient: a device's
// may be off by a bit.
func nearest8(x, high float32) int8 {
	high = abs(high)
	n := 0
	for high > 0 && n < 127 && (float32(n)+0.5)*high <= abs(x)*127 {
		n++
	}
	if x < 0 {
		n = -n
	}
	return int8(n)
}

// nearest4 is 8 + x / scale to the nearest whole number from 0 to 15, halves upwards.
func nearest4(x, high float32) byte {
	d := abs(high) * 0.125
	if d == 0 {
		return 8
	}
	if high >= 0 {
		x = -x
	}
	n := 0
	for n < 15 && (float32(n)-7.5)*d <= x {
		n++
	}
	return byte(n)
}

// load decodes the row into dst.
func (w Row) load(dst []float32) {
	for i := range dst {
		switch w.typ {
		case gguf.F16:
			dst[i] = quant.F16ToF32(binary.LittleEndian.Uint16(w.values[2*i:]))
		case gguf.F32:
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(w.values[4*i:]))
		case gguf.Q8_0:
			dst[i] = float32(int8(w.values[i])) * w.scale(i)
		case gguf.Q4_0:
			dst[i] = float32(int(w.values[i/8*4+i%4]>>(i%8/4*4)&15)-8) * w.scale(i)
		}
	}
}

func (w Row) scale(i int) float32 {
	return quant.F16ToF32(binary.LittleEndian.Uint16(w.scales[i/32*2:]))
}
