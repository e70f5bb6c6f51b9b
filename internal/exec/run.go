package exec

import (
	"context"
	"fmt"
	"strings"
	"time"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/weights"
	"leat/shaders"
	"leat/vk"
)

// run is one step being recorded. There is one, so that a step allocates nothing.
type run struct {
	ctx           context.Context // ends the step
	e             *Exec
	rows          []Row // of which the layer at hand has values
	asked         []int // of the step's, those that want logits
	keeps         bool  // the last layer keeps no others
	keeping       bool  // it has come to that
	kept          []Row // memory for it
	greedy        bool
	maxPages      int
	sequenceCount int
	step          int  // 1 for the first
	run           bool // all rows are of one sequence, at ascending positions

	cb     *vk.CommandBuffer
	rec    *kernels.Recorder
	waits  []vk.Point // of the submission being recorded
	points []vk.Point
	used   int        // command buffers submitted in this step
	nth    int        // command buffer that is open
	extra  int        // the next one that is no part
	parts  bool       // the step's parts are kept
	part   int        // that is open; nothing: none
	again  bool       // it was recorded in a step before
	stale  bool       // so was what was submitted last, and the recorder knows nothing of it
	units  int        // units recorded since the last submission
	absent float64    // the part of a layer's pairs of rows and experts that the wave being recorded leaves out
	summed bool       // the sum of the layer's experts is recorded
	next   submission // the one being recorded
	timed  []submission
	at     int     // unit of the plan that is recorded, or was last; nothing before the first
	open   int     // the same, but nothing between two
	told   int     // submissions that account has seen
	over   int     // submissions known to be over
	behind float64 // base cost of those that may not be

	since          time.Time           // recording since then
	blocked, rests time.Duration       // waited for weights to be on their way; rested
	missed         time.Duration       // of blocked, for experts
	pending        []*vk.CommandBuffer // closed, and not submitted
	signal         [1]vk.Point

	leaps    []leap          // layers that went ahead, of which nothing is known yet
	leapt    int             // of them, those of the next submission
	leaping  bool            // the part that is open is such a layer's
	cuts     int             // the step waited, or was too long
	back     int             // unit to go back to, whose experts have to come; nothing: none
	behindOf kernels.Brought // what there is as bytes there
	resumes  bool            // the step has gone back

	resubmitted bool // it is the commands of the step before
}

// reset makes r a step of rows, or says what is wrong with them.
func (r *run) reset(ctx context.Context, rows []Row, greedy bool) error {
	e := r.e
	asked, err := e.check(rows, r.asked[:0])
	if err != nil {
		return err
	}
	keeps := !e.EveryRow && e.Routed == nil && len(rows) > 1 && len(asked) < len(rows) && len(asked) <= shaders.FewRows
	*r = run{
		keeps: keeps, kept: r.kept[:0], ctx: ctx, e: e, rows: rows, asked: asked, greedy: greedy, run: oneRun(rows), step: r.step + 1, at: nothing, open: nothing, part: nothing,
		rec: r.rec, waits: r.waits[:0], points: r.points[:0], timed: r.timed[:0], pending: r.pending[:0], leaps: r.leaps[:0], back: nothing,
	}
	return nil
}

// forward records and submits the whole step, top to bottom.
func (r *run) forward() error {
	r.resume()
	defer r.pause()
	r.e.Weights.Begin(len(r.asked) > 0)
	r.e.waves.ahead = nothing
	if err := r.beginPart(0); err != nil {
		return err
	}
	if err := r.embed(); err != nil {
		return err
	}
	for i := 0; i < len(r.e.Plan.Units); {
		if err := r.unit(i); err != nil {
			return fmt.Errorf("%s: %w", r.e.Plan.Units[i].Name, err)
		}
		if i++; i == len(r.e.Plan.Units) {
			if err := r.end(); err != nil {
				return err
			}
		}
		if r.back != nothing {
			i, r.back, r.resumes = r.back, nothing, true
		}
	}
	return nil
}

// end hands in the last of the step's work, and learns whether layers that went ahead did.
func (r *run) end() error {
	if err := r.output(); err != nil {
		return err
	}
	if err := r.landed(); err != nil {
		return err
	}
	if err := r.submit(); err != nil {
		return err
	}
	return r.settle(true)
}

// embed copies the inputs to the device and decodes the tokens' embeddings into X.
func (r *run) embed() error {
	regions, err := r.inputs()
	if err != nil || r.again {
		return err
	}
	for _, g := range regions {
		if g.Bytes > 0 {
			if err := r.rec.Copy(r.e.scratch, g.Off, r.e.in, g.Off, g.Bytes); err != nil {
				return err
			}
		}
	}
	s := &r.e.Plan.Scratch
	if s.Counts.Bytes > 0 { // whatever became of the step before
		if err := r.rec.Zero(r.e.scratch, s.Counts.Off, s.Counts.Bytes); err != nil {
			return err
		}
	}
	return r.rec.GetRows(r.e.embd.Type, shaders.GetRowsArgs{
		Table: r.addr(s.Embd), IDs: r.addr(s.IDs), Dst: r.value(arch.X),
		Rows: uint32(len(r.rows)), Cols: uint32(r.e.Hyper.EmbeddingLength),
	})
}

func (r *run) addr(g plan.Region) uint64 { return r.e.scratch.Address + uint64(g.Off) }
func (r *run) width(v arch.Value) uint32 { return uint32(r.e.Hyper.Width(v)) }

// unit places one unit, waits for it, records it, and gives its memory back.
func (r *run) unit(i int) error {
	u := &r.e.Plan.Units[i]
	if u.Kind == pack.Head && len(r.asked) == 0 {
		return nil // its bytes do not come
	}
	if isCached(u) {
		return r.cachedUnit(i)
	}
	var placed weights.Placed
	if !r.again { // else it has come
		var err error
		if placed, err = r.place(i); err != nil {
			return err
		}
	}
	r.at, r.open = i, i
	if r.next.from == nothing {
		r.next.from = i
	}
	if u.Kind != pack.Norm || len(r.asked) > 0 {
		r.next.weights += u.Bytes
	}
	if r.again {
		r.open = nothing
		return nil
	}
	var err error
	switch u.Kind {
	case pack.Layer, pack.Experts:
		r.e.bases[i] = placed.Address
		for _, o := range r.e.ops[i] {
			if err := r.op(o, u); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(o.Weights(), ", "), err)
			}
		}
	case pack.Norm:
		err = r.headInput(u, placed.Address)
	case pack.Head:
		err = r.headPiece(u, placed.Address)
	}
	if err != nil {
		return err
	}
	if placed.Streamed {
		if err := r.submit(); err != nil {
			return err
		}
		r.e.Weights.Release(r.e.value)
		r.open = nothing
		return r.begin()
	}
	r.open = nothing
	if r.units++; !r.parts && r.units >= unitsPerSubmit(r.used) || r.due() {
		return r.cut()
	}
	return nil
}

// cachedUnit records a layer's experts that share slots.
func (r *run) cachedUnit(i int) error {
	r.at, r.open = i, i
	if r.next.from == nothing {
		r.next.from = i
	}
	for _, o := range r.e.ops[i] {
		if err := r.op(o, &r.e.Plan.Units[i]); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(o.Weights(), ", "), err)
		}
		if r.back != nothing {
			return nil
		}
	}
	r.open = nothing
	return nil
}

// place waits for one unit, and has the submission being recorded wait for its bytes.
func (r *run) place(i int) (placed weights.Placed, err error) {
	placed, waited, err := r.acquire(i)
	if err != nil {
		return placed, err
	}
	if r.points = r.e.Weights.Waits(placed, r.points[:0]); len(r.points) > 0 {
		if err := r.cut(); err != nil { // what is recorded so far need not wait for the bytes
			return placed, err
		}
		// They come no earlier; work in the queue before that could only wait there.
		if err := r.await(placed.After); err != nil {
			return placed, err
		}
		r.waits = append(r.waits, r.points...)
		r.next.awaits = i
	} else if waited > 0 {
		r.next.awaits, r.next.waited = i, waited
	}
	return placed, nil
}

// acquire is Weights.Acquire, which may have to wait for what is not on its way yet: then
// the device gets what is recorded before.
func (r *run) acquire(i int) (placed weights.Placed, waited time.Duration, err error) {
	if !r.e.Weights.Came(i) {
		if err := r.cut(); err != nil {
			return placed, 0, err
		}
		from := time.Now()
		r.pause()
		defer func() {
			r.resume()
			waited = r.since.Sub(from)
			r.blocked += waited
		}()
	}
	placed, err = r.e.Weights.Acquire(r.ctx, i)
	return placed, waited, err
}

// await waits until the device has come to a value.
func (r *run) await(value uint64) error {
	r.pause()
	defer r.resume()
	return r.e.Compute.Wait(r.ctx, value)
}

// unitsPerSubmit is how many units the next submission of a step holds at most: the first few, for the device waits
// while they are recorded, then more, for each submission costs the host and the device a little.
func unitsPerSubmit(submitted int) int {
	const first, growth, most = 2, 4, 24
	n := first
	for range min(submitted, 2) {
		n *= growth
	}
	return min(n, most)
}

// op records one operation of a layer.
func (r *run) op(o arch.Op, u *plan.Unit) error {
	if len(r.rows) == 0 { // nobody asks what comes of it
		return nil
	}
	if o.Kind == arch.Experts {
		return r.experts(&o)
	}
	if r.again {
		return nil
	}
	if o.Kind == arch.KeepAsked {
		return r.keepAsked(o.Values)
	}
	if o.Ops != nil {
		return r.fused(&o, u)
	}
	n, h, s := uint32(len(r.rows)), r.e.Hyper, &r.e.Plan.Scratch
	var weight uint64
	var t *pack.Tensor
	if o.Weight != "" {
		var err error
		if t, weight, err = r.tensor(o.Weight); err != nil {
			return err
		}
	}
	switch o.Kind {
	case arch.RMSNorm:
		rows, cols := n*uint32(o.Heads), uint32(o.Cols)
		a := shaders.RMSNormArgs{
			X: r.value(o.A), W: weight, Dst: r.value(o.Dst), Rows: rows, Cols: cols,
			XStride: r.width(o.A) / uint32(o.Heads), DstStride: r.width(o.Dst) / uint32(o.Heads), Eps: h.RMSEpsilon,
		}
		if o.Multiplied {
			return r.rec.RMSNormMultiplied(a)
		}
		return r.rec.RMSNorm(a)
	case arch.MulMat:
		return r.mulMat(t.Type, shaders.MulMatArgs{W: weight, X: r.value(o.A), Dst: r.value(o.Dst), M: r.width(o.Dst), K: r.width(o.A), N: n, XStride: r.width(o.A), DstStride: r.width(o.Dst)})
	case arch.Bias:
		return r.rec.Add(shaders.AddArgs{A: r.value(o.Dst), B: weight, Dst: r.value(o.Dst), Count: n * r.width(o.Dst), BCols: r.width(o.Dst)})
	case arch.RopeTurn:
		neox := uint32(0)
		if h.Rope.Neox {
			neox = 1
		}
		return r.rec.Rope(shaders.RopeArgs{X: r.value(o.Dst) + 4*uint64(o.Off), CosSin: r.addr(s.CosSin), Rows: n, Heads: uint32(o.Heads), HeadDim: uint32(o.Cols), RopeDim: uint32(h.Rope.Dim), XStride: r.width(o.Dst), Neox: neox})
	case arch.KVAppend:
		return r.rec.KVAppend(r.e.KVType, shaders.KVAppendArgs{
			K: r.value(o.A), V: r.value(o.B), Pages: r.addr(s.Pages), Pos: r.addr(s.Pos), Seq: r.addr(s.Seq),
			Rows: n, HeadsKV: uint32(h.HeadCountKV), KeyLen: uint32(h.KeyLength), ValLen: uint32(h.ValueLength),
			MaxPages: uint32(r.maxPages), PagePositions: plan.PagePositions, LayerOff: r.layerOff(u.Layer),
			KStride: r.width(o.A), VStride: r.width(o.B),
		})
	case arch.Attention:
		return r.attention(&o, u.Layer, weight)
	case arch.SwiGLU:
		a := shaders.GLUArgs{Gate: r.value(o.A), Up: r.value(o.B), Dst: r.value(o.Dst), Count: n * r.width(o.Dst)}
		return r.rec.SwiGLUMultiplied(a, n, r.width(o.Dst))
	case arch.Route:
		return r.route(&o, weight)
	case arch.SumExperts:
		return r.sumExperts(&o)
	case arch.SSMConv:
		return r.ssmConv(&o, u.Layer, weight)
	case arch.GatedDeltaNet:
		return r.deltaNet(&o, u.Layer, weight)
	case arch.HeadMulMat:
		return r.headMulMat(&o, t, weight)
	case arch.HeadCopy:
		return r.headCopy(&o)
	case arch.PairRows:
		cols := uint32(h.PairWidth(o.Dst))
		return r.rec.GetRows(t.Type, shaders.GetRowsArgs{Table: weight, IDs: r.value(o.A), Dst: r.value(o.Dst), Rows: n * r.width(o.A), Cols: cols})
	case arch.SigmoidMul:
		return r.sigmoidMul(&o)
	case arch.Add:
		return r.rec.Add(shaders.AddArgs{A: r.value(o.A), B: r.value(o.B), Dst: r.value(o.Dst), Count: n * r.width(o.Dst), BCols: n * r.width(o.Dst)})
	}
	return fmt.Errorf("operation %d has no kernel", o.Kind)
}

func (r *run) layerOff(l int) uint32 {
	return uint32(int64(r.e.Hyper.CacheLayer(l)) * r.e.Plan.KV.LayerBytes)
}
