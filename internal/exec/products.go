package exec

import (
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/shaders"
)

// mulMat splits a product by rows of X where one dispatch would run too long.
func (r *run) mulMat(t gguf.Type, a shaders.MulMatArgs) error { return r.mulMatAdd(t, a, 0, 0) }

// mulMatAdd is mulMat with what is at residual added, stride floats from row to row, where the recorder
// says that it can; 0: nothing is.
func (r *run) mulMatAdd(t gguf.Type, a shaders.MulMatArgs, residual uint64, stride uint32) error {
	perRow := 2 * float64(a.M) * float64(a.K)
	return r.byRows(a.N, perRow, func(from, n uint32) error {
		b := rowsOf(a, from, n)
		if residual != 0 {
			return r.rec.MulMatAdd(t, b, residual+uint64(from)*uint64(stride)*4, stride)
		}
		return r.rec.MulMat(t, b)
	})
}

// rowsOf is the product of n rows of X, from one on.
func rowsOf(a shaders.MulMatArgs, from, n uint32) shaders.MulMatArgs {
	a.X += uint64(from) * uint64(a.XStride) * 4
	a.Dst += uint64(from) * uint64(a.DstStride) * 4
	a.N = n
	return a
}

func (r *run) attention(o *arch.Op, layer int, sinks uint64) error {
	h, s := r.e.Hyper, &r.e.Plan.Scratch
	longest := 0
	for _, row := range r.rows {
		longest = max(longest, row.Position+1)
	}
	perRow := 2 * float64(longest) * float64(h.HeadCount) * float64(h.KeyLength+h.ValueLength)
	q, dst := r.width(o.A), r.width(o.Dst)
	pos, seq := r.places()
	r.rec.Positions = uint32(longest)
	return r.byRows(uint32(len(r.rows)), perRow, func(from, n uint32) error {
		return r.rec.FlashAttn(r.e.KVType, shaders.FlashAttnArgs{
			Q: r.value(o.A) + uint64(from)*uint64(q)*4, Dst: r.value(o.Dst) + uint64(from)*uint64(dst)*4,
			Pages: r.addr(s.Pages), Pos: pos + 4*uint64(from), Seq: seq + 4*uint64(from),
			Rows: n, Heads: uint32(h.HeadCount), HeadsKV: uint32(h.HeadCountKV), KeyLen: uint32(h.KeyLength), ValLen: uint32(h.ValueLength),
			MaxPages: uint32(r.maxPages), PagePositions: plan.PagePositions, LayerOff: r.layerOff(layer),
			QStride: q, DstStride: dst, Scale: h.AttentionScale, Window: uint32(o.Window), Sinks: sinks,
		})
	})
}
