package kernels

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
)

// Attention computes, for each row of Q, attention over the positions of its sequence that it sees.
type Attention struct {
	KV gguf.Type // type of the KV cache
	shaders.FlashAttnArgs
}

// attnVariants are the ways to record [Attention], the best first.
var attnVariants = []*variant[Attention]{&matrixAttn, &joinedAttn, &splitAttn, &plainAttn}

// FlashAttn records attention by the first variant that fits.
func FlashAttn(r *Recorder, t gguf.Type, a shaders.FlashAttnArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	r.args.attn = Attention{t, a}
	if c, _, _ := r.args.attn.check(r); c.err != nil {
		return c.err
	}
	_, err := recordBy(r, attnVariants, &r.args.attn)
	return err
}

// check checks the arguments of a. It returns the check, the memory that attention reads and writes, and an estimate of its cost.
func (a *Attention) check(r *Recorder) (c check, touched touch, co cost) {
	t := a.KV
	c = check{choice: choice{op: "flash_attn", typed: true, typ: t}}
	c.floats("Q", a.Q, a.QStride)
	c.floats("Dst", a.Dst, a.DstStride)
	c.heads(a.Heads, a.HeadsKV, a.KeyLen, a.ValLen)
	c.stride("QStride", a.QStride, a.Heads*a.KeyLen)
	c.stride("DstStride", a.DstStride, a.Heads*a.ValLen)
	c.paged(t, a.Pages, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	c.words("Seen", a.Seen)
	c.blocksOf(t, a.KeyLen, a.ValLen)
	c.softCap(a.SoftCap)
	n := float64(a.Rows) * float64(a.Heads) * float64(seen(r, a.MaxPages, a.PagePositions))
	co = cost{bytes: n * kvBytes(t, a.KeyLen, a.ValLen), flops: 2 * n * float64(a.KeyLen+a.ValLen)}
	touched.read(f32s(a.Q, a.Rows, a.Heads*a.KeyLen, a.QStride))
	touched.pageTable(a.Pages, a.Seq, a.Rows, a.MaxPages)
	touched.read(seenBy(a.Seen, a.Rows))
	touched.read(cacheSpan(a.LayerOff))
	if a.Sinks != 0 {
		c.address("Sinks", a.Sinks)
		touched.read(f32s(a.Sinks, 1, a.Heads, 0))
	}
	if a.Slopes != 0 {
		c.address("Slopes", a.Slopes)
		c.require(a.Sinks == 0, "Slopes", a.Slopes, "0 beside sinks")
		touched.read(f32s(a.Slopes, 1, a.Heads, 0))
	}
	touched.write(f32s(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride))
	return c, touched, co
}

// held is an upper bound of the positions that a row's sequence has.
func held(r *Recorder, maxPages, pagePositions uint32) uint64 {
	if r.Rows.Positions > 0 {
		return uint64(r.Rows.Positions)
	}
	return uint64(maxPages) * uint64(pagePositions)
}

// seen is an upper bound of the positions that a row attends to.
func seen(r *Recorder, maxPages, pagePositions uint32) uint64 {
	n := held(r, maxPages, pagePositions)
	if w := uint64(r.Rows.Window); w > 0 {
		n = min(n, w)
	}
	return n
}

// seenBy is the memory that has the first and the last position that each of rows sees.
func seenBy(at uint64, rows uint32) span { return f32s(at, 1, 2*rows, 0) }

// pageTable adds reads of the page table and of each row's sequence. The number of sequences is not known here: it adds the table's row of one sequence.
func (t *touch) pageTable(pages, seq uint64, rows, maxPages uint32) {
	t.read(span{pages, pages + 8*uint64(maxPages)})
	t.read(f32s(seq, 1, rows, 0))
}

// kvBytes is the size of a key and a value of one KV head at one position, in a KV cache of type t.
func kvBytes(t gguf.Type, keyLen, valLen uint32) float64 {
	return float64(shaders.KVRowBytes(t, int(keyLen)) + shaders.KVRowBytes(t, int(valLen)))
}

// softCap checks that v is 0 or more, and no NaN.
func (c *check) softCap(v float32) {
	if !(v >= 0) {
		c.require(false, "SoftCap", v, "0 (none) or more")
	}
}

// blocksOf checks that a KV cache of type t can hold heads of these sizes.
func (c *check) blocksOf(t gguf.Type, keyLen, valLen uint32) {
	if err := shaders.CheckKV(t, int(keyLen), int(valLen)); err != nil && c.err == nil {
		c.err = err
	}
}

// paged checks the arguments that all ops on a paged KV cache of type t have.
func (c *check) paged(t gguf.Type, pages, seq uint64, maxPages, pagePositions, layerOff uint32) {
	c.address("Pages", pages)
	c.words("Seq", seq)
	c.positive("MaxPages", maxPages)
	c.positive("PagePositions", pagePositions)
	if shaders.KVQuantised(t) {
		c.multiple("PagePositions", pagePositions, shaders.KVPage)
	}
	c.multiple("LayerOff", layerOff, 16)
}

// heads checks numbers and sizes of heads.
func (c *check) heads(heads, headsKV, keyLen, valLen uint32) {
	c.positive("HeadsKV", headsKV)
	if headsKV > 0 && heads%headsKV != 0 {
		c.require(false, "Heads", heads, fmt.Sprintf("a multiple of HeadsKV, %d", headsKV))
	}
	c.positive("KeyLen", keyLen)
	c.multiple("KeyLen", keyLen, 8)
	c.positive("ValLen", valLen)
	c.multiple("ValLen", valLen, 8)
	c.atMost("KeyLen", keyLen, shaders.MaxKey)
	c.atMost("ValLen", valLen, shaders.MaxHead)
}
