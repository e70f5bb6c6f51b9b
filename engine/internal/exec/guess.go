package exec

import (
	"leat/decompose/pack"
	"leat/engine/arch"
	"leat/engine/internal/weights"
	"leat/engine/plan"
	"leat/shaders"
	"leat/vk"
)

// guesses have a layer's router run early, on what the layer before hands to its own experts: most of what it chooses it
// will choose again, so it may come already while the link has nothing else to bring.
type guesses struct {
	ids     *vk.Buffer     // host memory: (rows, Used) uint32; nil: nobody guesses
	routers []router       // by layer
	batch   *weights.Batch // what comes because of a guess
	layer   int            // whose experts batch has; nothing: no layer's
	asked   int            // layer whose early router is under way; nothing: none's
	value   uint64         // compute value at which it is over
	list    []int32        // scratch
	right   float64        // how many of them were, by those before
}

const (
	guessMemory = 1.0 / 32  // the weight of the last guess in how many are right
	leastRight  = 0.5       // of those that the engine has come by itself
	forgiven    = 1.0 / 512 // of the wrong ones, with each step that has none
)

// guessing is how many experts of the next layer may come early in a step of so many rows.
func (e *Exec) guessing(rows int) int {
	g := &e.waves.guesses
	if g.ids == nil || rows > shaders.FewRows {
		return 0
	}
	if e.GuessAbove > 0 && (e.ahead.lacks < e.GuessAbove || g.right < leastRight) {
		g.right += forgiven * (1 - g.right)
		return 0
	}
	return e.Guess
}

// router is what a layer's choice of experts is made of.
type router struct {
	norm, gate at // unit -1: the layer is not guessed
	bias       at // unit -1: none
}

// at is a tensor in a unit of the plan.
type at struct {
	unit   int
	tensor *pack.Tensor
}

func (e *Exec) makeGuesses() (err error) {
	x := e.Weights.Experts()
	if x == nil || e.Guess == 0 {
		return nil
	}
	g := &e.waves.guesses
	g.right = 1
	for l := range e.Hyper.BlockCount {
		g.routers = append(g.routers, routerOf(e.Plan.Units, l, e.Hyper.Layer(l, e.Model.Has)))
	}
	g.batch = x.NewBatch()
	g.ids, err = e.Host.Alloc("guessed experts", int64(4*shaders.FewRows*e.Hyper.Experts.Used), vk.Readback)
	return err
}

// routerOf finds the norm, the product and the bias that a layer's choice is made of.
func routerOf(units []plan.Unit, layer int, ops []arch.Op) router {
	find := func(name string) at {
		for i := range units {
			if units[i].Kind == pack.Layer && units[i].Layer == layer {
				if t, ok := units[i].Tensor(name); ok {
					return at{i, t}
				}
			}
		}
		return at{unit: -1}
	}
	r := router{norm: at{unit: -1}, gate: at{unit: -1}, bias: at{unit: -1}}
	norm := -1
	for i, o := range ops {
		switch {
		case o.Kind == arch.RMSNorm && o.Heads == 1:
			norm = i
		case o.Kind == arch.MulMat && o.Dst == arch.Scores && norm >= 0 && ops[norm].Dst == o.A && ops[norm].A == arch.X:
			r.norm, r.gate = find(ops[norm].Weight), find(o.Weight)
		case o.Kind == arch.Bias && o.Dst == arch.Scores:
			r.gate.unit = -1 // a router of another kind
		case o.Kind == arch.Route && o.Weight != "":
			if r.bias = find(o.Weight); r.bias.unit < 0 {
				r.gate.unit = -1
			}
		}
	}
	return r
}

// address is where a tensor lies whose unit stays in VRAM and has been read before; 0: it doesn't.
func (r *run) address(a at) uint64 {
	if a.unit < 0 || !r.e.Plan.Units[a.unit].Resident() || r.e.bases[a.unit] == 0 {
		return 0
	}
	return r.e.bases[a.unit] + uint64(a.tensor.UnitOff)
}

// nextCached is the layer whose experts share slots and run next; nothing: none's.
func (r *run) nextCached() int {
	units := r.e.Plan.Units
	for i := r.at + 1; i < len(units); i++ {
		if isCached(&units[i]) {
			return units[i].Layer
		}
	}
	return nothing
}

// ask submits the next layer's router, early. What it works in is memory that this layer's experts have not written yet.
func (r *run) ask() error {
	e, g, h := r.e, &r.e.waves.guesses, r.e.Hyper
	layer := r.nextCached()
	if r.guesses == 0 || r.grouped() || layer == nothing {
		return nil
	}
	t := &g.routers[layer]
	norm, gate, bias := r.address(t.norm), r.address(t.gate), r.address(t.bias)
	if norm == 0 || gate == 0 || bias == 0 && t.bias.unit >= 0 {
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	n, d, x := uint32(len(r.rows)), uint32(h.EmbeddingLength), &h.Experts
	normed := r.value(arch.ExpertOut)
	err := r.rec.RMSNorm(shaders.RMSNormArgs{X: r.value(arch.X), W: norm, Dst: normed, Rows: n, Cols: d, XStride: d, DstStride: d, Eps: h.RMSEpsilon})
	if err != nil {
		return err
	}
	m := uint32(x.Count)
	if err := r.mulMat(t.gate.tensor.Type, shaders.MulMatArgs{W: gate, X: normed, Dst: r.value(arch.Scores), M: m, K: d, N: n, XStride: d, DstStride: m}); err != nil {
		return err
	}
	a := r.routeArgs(r.value(arch.Scores), bias)
	a.IDs, a.Weights = r.value(arch.ExpertGate), r.value(arch.ExpertUp)
	if err := r.rec.TopKMoE(a); err != nil {
		return err
	}
	from := e.Plan.Scratch.Values[arch.ExpertGate].Off
	if err := r.rec.Copy(g.ids, 0, e.scratch, from, int64(4*n*uint32(x.Used))); err != nil {
		return err
	}
	r.cb.HostBarrier()
	if err := r.submit(); err != nil {
		return err
	}
	g.asked, g.value = layer, e.value
	return nil
}

// foresee has some of what the early router chose come, while the layer at hand runs. It never waits for the disk.
func (r *run) foresee() error {
	e, w, g := r.e, &r.e.waves, &r.e.waves.guesses
	layer := g.asked
	if layer == nothing {
		return nil
	}
	g.asked = nothing
	if err := r.hear(g.value); err != nil {
		return err
	}
	x := e.Weights.Experts()
	g.list = g.list[:0]
	m, used := g.ids.Mapped(), e.Hyper.Experts.Used
	for k := range used { // the best of each row first
		for row := range r.rows {
			if id := int32(le.Uint32(m[4*(row*used+k):])); int(id) < len(w.pairs) && len(g.list) < r.guesses && x.Near(layer, id) && !contains(g.list, id) {
				g.list = append(g.list, id)
			}
		}
	}
	x.Begin(r.step, layer)
	g.layer = layer
	return x.Foresee(r.ctx, layer, g.list, g.batch)
}

func contains(list []int32, id int32) bool {
	for _, x := range list {
		if x == id {
			return true
		}
	}
	return false
}

// judge lets go of what came because of a guess, now that the layer has chosen. What is used is taken as any other, but with
// those that have to come: it may still be on its way. The others were guessed rightly, and are counted.
func (r *run) judge(layer int) (came int, err error) {
	w, g := &r.e.waves, &r.e.waves.guesses
	if g.layer == nothing {
		return 0, nil
	}
	x, n := r.e.Weights.Experts(), 0
	for _, id := range w.hits {
		late := false
		for i := range g.batch.Len() {
			late = late || g.layer == layer && x.ID(g.batch, i) == int(id)
		}
		if late {
			w.misses = append(w.misses, id)
		} else {
			w.hits[n] = id
			n++
		}
	}
	w.hits = w.hits[:n]
	g.layer = nothing
	for i := range g.batch.Len() {
		id := x.ID(g.batch, i)
		g.right -= guessMemory * g.right
		if w.pairs[id] > 0 {
			g.right += guessMemory
		}
		if contains(w.hits, int32(id)) {
			came++
		}
	}
	return came, x.Judge(g.batch, w.pairs)
}
