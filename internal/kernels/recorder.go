package kernels

import (
	"errors"
	"fmt"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// Role says whether rows are of a prompt or to decode. Kernels of one role give a row the same bits, whatever other rows share its step.
type Role uint8

// The roles of rows.
const (
	Prompt Role = iota // rows of given tokens
	Decode             // rows of sampled tokens; also prompt rows whose logits are needed, from the last layer's attention on
)

// Recorder records ops into one command buffer; one goroutine owns it. An op without work (a zero count) records
// nothing. The results are as if ops ran in order: it records a barrier only where an op reads or writes memory that an earlier op wrote, or
// writes memory that one read. To run after ops of other command buffers, call [Recorder.Barrier] first.
type Recorder struct {
	Rows     Rows      // the rows that ops are recorded for
	Memory   Memory    // memory that ops may use
	Override Overrides // constants in place of the program's own
	Watch    Watch     // functions that the recorder calls

	k         *Kernels          // gives the pipelines
	cb        *vk.CommandBuffer // gets the commands; nil if dry
	dry       bool              // the recorder builds and dispatches nothing
	memo      *memo             // pipelines used last; nil until the first one is used
	args      opArgs            // arguments of the op being recorded
	spent     cost              // cost of all ops since the last ResetCost
	history   history           // memory accesses since the last barriers
	quantised Quantised         // which X are in memory as int8
	tiles     tiles             // which X is in memory as float16 tiles
	sorted    sorted            // which (row, expert) pairs are in memory sorted by expert
}

// Rows describes the rows that ops are recorded for. The choice of kernels and the cost estimate depend on it.
type Rows struct {
	// Role decides the kernels; the number of rows does not. Rows to decode, at most [shaders.FewRows], use int8 products, and attention that
	// splits a row's positions among workgroups, if the device can run them. Rows of prompts use cooperative matrices if the device has them, else
	// int8 products if Memory.Q8 has bytes.
	Role Role
	// Run says that all rows of FlashAttn are of one sequence, at ascending positions. Attention by cooperative matrices needs that.
	Run bool
	// Positions is the most positions of a sequence of FlashAttn's rows; 0: as many as its pages hold. Window is the most of these that a row attends to,
	// wherever they begin; 0: a row may attend to all. Both affect cost estimates, and how the work is divided.
	Positions, Window uint32
	// Absent is the fraction, 0 to 1, of (row, expert) pairs whose expert has address 0 and is skipped. Only the cost estimate uses it.
	Absent float64
}

// Memory is the memory that ops may use for intermediate values. Kernels that need a field that has 0 bytes are not recorded.
type Memory struct {
	// Tiles holds both sides of a product of many rows, X and weights, as tiles of float16, for cooperative matrices.
	Tiles Scratch
	// Q8 holds X quantised to int8: twice [shaders.Q8Size] of the longest X.
	Q8 Scratch
	// Parts holds partial results of split attention, see [shaders.PartBytes], and of argmax, see [shaders.ArgmaxPartBytes].
	Parts Scratch
	// Counters count the workgroups that have ended, so that the last one joins the partial results of attention and argmax. They must be
	// zero when the command buffer begins to run, see [shaders.CounterBytes]. With 0 bytes attention is joined by a second dispatch, and argmax has no parts.
	Counters Scratch
	// Grids holds the grids of weights of [shaders.GridTypes], [shaders.GridBytes] that no op writes. An op with such weights fails without them.
	Grids Scratch
}

// Overrides are constants and choices that measurements and tests give in place of the program's own; zero values override nothing.
type Overrides struct {
	Tile     Tile     // constants of a mul_mat_vec in teams
	CMTile   CMTile   // constants of products by cooperative matrices; it overrides tuned ones too
	Decoding Decoding // where products by cooperative matrices decode quantised weights
	CMAttn   CMAttn   // constants of flash_attn_cm
}

// Watch has functions that a recorder calls. Those that are nil are not called.
type Watch struct {
	// Considered is called for each variant that is examined for an op, with the reason why it does not fit, "" if it does. If no variant fits, a
	// last call has a nil rule.
	Considered func(rule *Rule, why string)
	// Recorded is called after each dispatch, copy, fill and update is recorded, with its name and the estimate of its cost.
	Recorded func(op string, bytes, flops float64)
}

// memo is a small hash table of the pipelines that a recorder used last. Each step needs the same few pipelines, and finds them here without the lock of
// [Kernels].
type memo [64]struct {
	choice choice
	built  *built
}

// slot is the index of a choice in a [memo].
func (c *choice) slot() uint32 {
	n := c.cmTile.BN*23 + uint32(c.typ)*31 + c.cols*7 + c.rows*5 + c.glu*3 + c.tile.Team + c.tile.Rows*11 + c.per + c.attn.group*19 + uint32(len(c.op))*13 + uint32(len(c.variant))*17
	return n % uint32(len(memo{}))
}

// Recorder returns a recorder that records into cb. The recording of cb must have begun.
func (k *Kernels) Recorder(cb *vk.CommandBuffer) *Recorder {
	return &Recorder{k: k, cb: cb}
}

// Dry returns a recorder that builds, tests and dispatches nothing. [Watch].Considered shows which variants it would record. It leaves out kernels that
// failed a self-test before.
func (k *Kernels) Dry() *Recorder { return &Recorder{k: k, dry: true} }

// Reset makes r like a new recorder into cb, whose recording has begun: the exported fields are zero, and r forgets which X are in memory as int8 or in tiles.
func (r *Recorder) Reset(cb *vk.CommandBuffer) {
	h, ordered, pending := r.history.since, r.history.ordered, r.tiles.pending[:0]
	h.clear()
	ordered.clear()
	*r = Recorder{k: r.k, cb: cb, dry: r.dry, history: history{since: h, ordered: ordered}, tiles: tiles{pending: pending}, memo: r.memo}
}

// Continue is like [Recorder.Reset], but r still knows which X are in memory as int8 or in tiles, and which pairs are sorted. The earlier command buffer must
// be submitted to the same queue before cb. Call [Recorder.Barrier] before the first op.
func (r *Recorder) Continue(cb *vk.CommandBuffer) {
	b, t, s := r.quantised, r.tiles, r.sorted
	r.Reset(cb)
	r.quantised, r.sorted = b, s
	r.tiles.x, r.tiles.n, r.tiles.k, r.tiles.s = t.x, t.n, t.k, t.s
}

// ContinueAfter is like [Recorder.Reset], for a command buffer that runs after others that r need not have recorded. b says which rows these leave in memory
// as int8, see [Recorder.Quantised].
func (r *Recorder) ContinueAfter(cb *vk.CommandBuffer, b Quantised) {
	r.Reset(cb)
	r.quantised = b
}

// Barrier records a full barrier: all later commands see what earlier ones wrote, copies included. The recorder then forgets its history of accesses.
func (r *Recorder) Barrier() {
	r.cb.Barrier()
	r.history.since.clear()
	r.history.ordered.clear()
	r.history.copied = false
	r.history.barriers++
}

// Copied reports whether a copy, fill or update was recorded since the last Barrier. Ops that follow then need a Barrier; a DispatchBarrier is not enough.
func (r *Recorder) Copied() bool { return r.history.copied }

// Copy copies bytes between buffers, in order with the ops.
func (r *Recorder) Copy(dst *vk.Buffer, dstOff int64, src *vk.Buffer, srcOff, bytes int64) error {
	t := touch{copies: true}
	t.read(span{src.Address + uint64(srcOff), src.Address + uint64(srcOff+bytes)})
	t.write(span{dst.Address + uint64(dstOff), dst.Address + uint64(dstOff+bytes)})
	if err := r.order(&t); err != nil {
		return err
	}
	r.cb.Copy(dst, dstOff, src, srcOff, bytes)
	if r.Watch.Recorded != nil {
		r.Watch.Recorded("copy", 2*float64(bytes), 0)
	}
	return nil
}

// Zero makes bytes of a buffer zeros, in order with the ops; off and bytes are multiples of 4.
func (r *Recorder) Zero(dst *vk.Buffer, off, bytes int64) error {
	t := touch{copies: true}
	t.write(span{dst.Address + uint64(off), dst.Address + uint64(off+bytes)})
	if err := r.order(&t); err != nil {
		return err
	}
	r.cb.Fill(dst, off, bytes, 0)
	if r.Watch.Recorded != nil {
		r.Watch.Recorded("fill", float64(bytes), 0)
	}
	return nil
}

// Update writes b to a buffer, in order with the ops. The contents of b are recorded now: later changes of b have no effect.
func (r *Recorder) Update(dst *vk.Buffer, off int64, b []byte) error {
	t := touch{copies: true}
	t.write(span{dst.Address + uint64(off), dst.Address + uint64(off) + uint64(len(b))})
	if err := r.order(&t); err != nil {
		return err
	}
	r.cb.Update(dst, off, b)
	if r.Watch.Recorded != nil {
		r.Watch.Recorded("update", float64(len(b)), 0)
	}
	return nil
}

// Cost estimates the bytes of memory traffic and the floating-point operations recorded since [Recorder.ResetCost],
// so that work can be split into submits of bounded time.
func (r *Recorder) Cost() (bytes, flops float64) { return r.spent.bytes, r.spent.flops }

// ResetCost makes [Recorder.Cost] start from zero.
func (r *Recorder) ResetCost() { r.spent = cost{} }

// cost is the memory traffic of an op, in bytes, and the number of its floating-point operations.
type cost struct{ bytes, flops float64 }

// record records the dispatch of an op, or returns the error of a check that has failed. It builds and tests the pipeline if this is the first use.
func record[T any](r *Recorder, c *check, args *T, groups uint64, t *touch, co cost) error {
	if c.err != nil {
		return c.err
	}
	b, err := r.get(c.choice)
	if err != nil {
		return err
	}
	return dispatch(r, c, b, args, groups, t, co)
}

// get is [Kernels.get] with a cache of the recorder's own, the memo. A dry recorder gets no pipeline.
func (r *Recorder) get(c choice) (*built, error) {
	if r.dry {
		row, err := c.row()
		if err != nil {
			return nil, err
		}
		return &built{row: row, spec: specValues(row, c)}, nil
	}
	if r.memo == nil {
		r.memo = new(memo)
	}
	m := &r.memo[c.slot()]
	if m.built != nil && m.choice == c {
		return m.built, nil
	}
	b, err := r.k.get(c)
	if err == nil {
		m.choice, m.built = c, b
	}
	return b, err
}

// usable reports whether no pipeline of the choice's kernel has failed its self-test. It builds and tests the choice's pipeline if that was not done. Kernels
// that test nothing are all usable. If building fails for another reason, the choice counts as usable, and recording it returns the error.
func (r *Recorder) usable(c choice) bool {
	if r.dry {
		row, err := c.row()
		return err == nil && r.k.CanRun(row) && !r.k.tested.broken(row.Name)
	}
	if r.k.untested == nil {
		return true // nothing is tested
	}
	b, err := r.get(c)
	if err == nil { // another pipeline of its row may have failed since it was built
		return r.k.tested.failures.Load() == 0 || !r.k.tested.broken(b.row.Name)
	}
	var broken *BrokenError
	return !errors.As(err, &broken)
}

// maxGroups bounds the sides of a grid on devices without a smaller limit, so that grids are the same on all of them.
const maxGroups = 65535

// dispatch records a dispatch of groups workgroups with args as push constants, after a barrier if one is needed. It adds the cost co. It fails if
// the device can't run that many workgroups. A dry recorder only forgets the int8 rows, tiles and sorted pairs that t overwrites.
func dispatch[T any](r *Recorder, c *check, b *built, args *T, groups uint64, t *touch, co cost) error {
	limit := &r.k.dev.Physical.Limits.MaxWorkgroups
	x, y, ok := fold(groups, min(limit[0], maxGroups), min(limit[1], maxGroups))
	// Kernels number lanes in 32 bits.
	if !ok || uint64(x)*uint64(y) > 1<<32/uint64(b.row.LocalSize) {
		return &ArgError{c.String(), "the number of workgroups", groups,
			fmt.Sprintf("at most %d x %d and 2^32 lanes", min(limit[0], maxGroups), min(limit[1], maxGroups))}
	}
	if r.dry {
		r.forgetOverwritten(t)
		return nil
	}
	if err := r.order(t); err != nil {
		return err
	}
	r.cb.Bind(b.pipeline)
	vk.Push(r.cb, b.pipeline, args)
	r.cb.Dispatch(x, y, 1)
	r.spent.bytes += co.bytes
	r.spent.flops += co.flops
	if r.Watch.Recorded != nil {
		r.Watch.Recorded(c.choice.String(), co.bytes, co.flops)
	}
	return nil
}

// GetRows decodes the rows a.IDs of a table of type t into Dst (Rows, Cols).
func GetRows(r *Recorder, t gguf.Type, a shaders.GetRowsArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "get_rows", typed: true, typ: t}}
	c.address("Table", a.Table)
	c.words("IDs", a.IDs)
	c.floats("Dst", a.Dst, a.Cols)
	c.blocks("Cols", a.Cols)
	a.Grids = c.grids(r)
	co := cost{bytes: float64(a.Rows) * (rowBytes(t, a.Cols) + 4*float64(a.Cols))}
	var touched touch
	touched.read(f32s(a.IDs, 1, a.Rows, 0))
	touched.read(span{a.Table, 1 << 63}) // only the device knows which rows it reads
	touched.write(f32s(a.Dst, a.Rows, a.Cols, a.Cols))
	return record(r, &c, &a, a.Workgroups(), &touched, co)
}

// prefersInt8 reports whether products of the recorder's rows should use int8 kernels. For rows of a prompt they should if the device has
// no cooperative matrices and [Memory.Q8] has bytes. The caller must check whether Q8 is large enough for an X.
func (r *Recorder) prefersInt8() bool {
	return r.k.can.few && (r.Rows.Role == Decode || r.k.can.matrix == 0 && r.Memory.Q8.Bytes > 0)
}

// blocks checks that n is a multiple of the block size of the choice's type.
func (c *check) blocks(what string, n uint32) {
	if size := c.typ.BlockSize(); size > 0 { // for an unknown type, looking up the kernel in the shaders' table will fail
		c.multiple(what, n, uint32(size))
	}
}

// grids returns the address of the grids if the choice's type has one, else 0. It checks that the recorder has them.
func (c *check) grids(r *Recorder) uint64 {
	if !c.typed || !shaders.HasGrid(c.typ) {
		return 0
	}
	c.address("Memory.Grids", r.Memory.Grids.Address)
	return r.Memory.Grids.Address
}

// rowBytes is the bytes of a row of cols weights of type t.
func rowBytes(t gguf.Type, cols uint32) float64 {
	return float64(cols) / float64(t.BlockSize()) * float64(t.BlockBytes())
}
