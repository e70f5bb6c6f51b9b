package exec

import (
	"fmt"

	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/shaders"
)

// headInput gathers the rows that want logits from X, unless all do, and normalises them.
func (r *run) headInput(u *plan.Unit, base uint64) error {
	if len(r.asked) == 0 {
		return nil
	}
	t, ok := u.Tensor(arch.OutputNorm)
	if !ok {
		return fmt.Errorf("tensor %q is not in %s", arch.OutputNorm, u.Name)
	}
	s, d, n := &r.e.Plan.Scratch, uint32(r.e.Hyper.EmbeddingLength), uint32(len(r.asked))
	x := r.value(arch.X)
	if len(r.asked) < len(r.rows) {
		err := r.rec.GetRows(gguf.F32, shaders.GetRowsArgs{Table: x, IDs: r.addr(s.LogitIDs), Dst: r.addr(s.Head), Rows: n, Cols: d})
		if err != nil {
			return err
		}
		x = r.addr(s.Head)
	}
	return r.rec.RMSNormMultiplied(shaders.RMSNormArgs{X: x, W: base + uint64(t.UnitOff), Dst: r.addr(s.Head), Rows: n, Cols: d, XStride: d, DstStride: d, Eps: r.e.Hyper.RMSEpsilon})
}

// headPiece computes the logits of a run of the vocabulary's rows.
func (r *run) headPiece(u *plan.Unit, base uint64) error {
	if len(r.asked) == 0 {
		return nil
	}
	t := &u.Tensors[0]
	s, d := &r.e.Plan.Scratch, uint32(r.e.Hyper.EmbeddingLength)
	return r.mulMat(t.Type, shaders.MulMatArgs{
		W: base + uint64(t.UnitOff), X: r.addr(s.Head), Dst: r.addr(s.Logits) + 4*uint64(u.Row),
		M: uint32(t.Shape[0]), K: d, N: uint32(len(r.asked)), XStride: d, DstStride: uint32(r.e.Hyper.VocabSize),
	})
}

// output copies logits, or their argmax, to host memory.
func (r *run) output() error {
	if r.again {
		return nil
	}
	if len(r.asked) == 0 {
		if r.e.Routed != nil {
			r.cb.HostBarrier()
		}
		return nil
	}
	s, n, v := &r.e.Plan.Scratch, len(r.asked), r.e.Hyper.VocabSize
	if r.greedy {
		if err := r.rec.Argmax(shaders.ArgmaxArgs{X: r.addr(s.Logits), Dst: r.addr(s.Argmax), Rows: uint32(n), Cols: uint32(v)}); err != nil {
			return err
		}
		if err := r.rec.Copy(r.e.out, s.Logits.Bytes, r.e.scratch, s.Argmax.Off, int64(4*n)); err != nil {
			return err
		}
	} else if err := r.rec.Copy(r.e.out, 0, r.e.scratch, s.Logits.Off, int64(4*n*v)); err != nil {
		return err
	}
	r.cb.HostBarrier()
	return nil
}
