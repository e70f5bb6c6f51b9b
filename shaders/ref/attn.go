package ref

import (
	"encoding/binary"
	"math"

	"leat/gguf"
	"leat/gguf/quant"
)

// KV is a paged key/value cache of one layer, laid out as the device has it.
//
// A page holds PagePositions positions; from LayerOff on: K (Hkv, PagePositions, Dk), then V (Hkv, PagePositions, Dv).
// Position p of sequence s is in page Table[s*MaxPages + p/PagePositions].
type KV struct {
	Type           gguf.Type // F16 or F32
	Pages          [][]byte
	Table          []int // (B, MaxPages) index into Pages
	MaxPages       int
	PagePositions  int
	LayerOff       int // bytes
	HeadsKV        int
	KeyLen, ValLen int
}

// ElemBytes is the size of one stored value.
func (kv *KV) ElemBytes() int {
	if kv.Type == gguf.F16 {
		return 2
	}
	return 4
}

// LayerBytes is what one layer takes of a page.
func (kv *KV) LayerBytes() int {
	return kv.HeadsKV * kv.PagePositions * (kv.KeyLen + kv.ValLen) * kv.ElemBytes()
}

// Key is the stored key of one head at one position, bytes of shape (Dk).
func (kv *KV) Key(seq, head, pos int) []byte {
	page := kv.Pages[kv.Table[seq*kv.MaxPages+pos/kv.PagePositions]]
	off := kv.LayerOff + (head*kv.PagePositions+pos%kv.PagePositions)*kv.KeyLen*kv.ElemBytes()
	return page[off : off+kv.KeyLen*kv.ElemBytes()]
}

// Val is the stored value of one head at one position, bytes of shape (Dv).
func (kv *KV) Val(seq, head, pos int) []byte {
	page := kv.Pages[kv.Table[seq*kv.MaxPages+pos/kv.PagePositions]]
	base := kv.LayerOff + kv.HeadsKV*kv.PagePositions*kv.KeyLen*kv.ElemBytes()
	off := base + (head*kv.PagePositions+pos%kv.PagePositions)*kv.ValLen*kv.ElemBytes()
	return page[off : off+kv.ValLen*kv.ElemBytes()]
}

// KVAppend stores row r of k and v at position pos[r] of sequence seq[r], rounded to the cache's type.
func KVAppend(kv *KV, k Mat /* (T, Hkv*Dk) */, v Mat /* (T, Hkv*Dv) */, pos, seq []uint32 /* (T) */) {
	for r := range k.Rows {
		for h := range kv.HeadsKV {
			kv.store(kv.Key(int(seq[r]), h, int(pos[r])), k.Row(r)[h*kv.KeyLen:])
			kv.store(kv.Val(int(seq[r]), h, int(pos[r])), v.Row(r)[h*kv.ValLen:])
		}
	}
}

func (kv *KV) store(dst []byte, src []float32) {
	for i := range len(dst) / kv.ElemBytes() {
		if kv.Type == gguf.F16 {
			binary.LittleEndian.PutUint16(dst[2*i:], quant.F32ToF16(src[i]))
		} else {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(src[i]))
		}
	}
}

func (kv *KV) load(src []byte, i int) float64 {
	if kv.Type == gguf.F16 {
		return float64(quant.F16ToF32(binary.LittleEndian.Uint16(src[2*i:])))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
}

// FlashAttn lets row r attend to positions 0..pos[r] of sequence seq[r]: softmax(scale * q·k) · v for each query head.
// Query heads share key/value heads in groups of H/Hkv (GQA).
func FlashAttn(dst Mat /* (T, H*Dv) */, q Mat /* (T, H*Dk) */, kv *KV, pos, seq []uint32 /* (T) */, heads int, scale float32) {
	for r := range q.Rows {
		for h := range heads {
			attend(dst.Row(r)[h*kv.ValLen:(h+1)*kv.ValLen], q.Row(r)[h*kv.KeyLen:(h+1)*kv.KeyLen],
				kv, int(seq[r]), h*kv.HeadsKV/heads, int(pos[r]), scale)
		}
	}
}

func attend(dst []float32 /* (Dv) */, q []float32 /* (Dk) */, kv *KV, seq, headKV, pos int, scale float32) {
	att := make([]float64, pos+1) // scores, then probabilities, of positions 0..pos
	for p := range att {
		key := kv.Key(seq, headKV, p)
		for i, v := range q {
			att[p] += float64(v) * kv.load(key, i)
		}
		att[p] *= float64(scale)
	}
	softMax(att)
	out := make([]float64, len(dst)) // (Dv)
	for p, w := range att {
		val := kv.Val(seq, headKV, p)
		for i := range out {
			out[i] += w * kv.load(val, i)
		}
	}
	for i, v := range out {
		dst[i] = float32(v)
	}
}
