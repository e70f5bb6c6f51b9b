package predict

import (
	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
)

// costModel computes how long each unit of a plan keeps disk, link and device busy in a step, waits for the host included, on a machine of known speeds.
type costModel struct {
	plan   *plan.Plan  // the plan whose work is computed
	speeds Speeds      // speeds of the machine
	hyper  *arch.Hyper // hyperparameters of the planned model
	loads  []unitLoad  // by unit: what the unit's kernels do in a step
	shares []unitShare // by unit: the unit's share of a rehearsed layer's time; nil: nothing was rehearsed
	hits   *ExpertHits // measured or assumed hits of experts that share slots; nil: all experts are used equally often

	idle float64 // how far the device's clock is lowered; 0: not at all, 1: as far as possible
}

// unitShare is the share that a unit takes of the rehearsed time of its layer, or of the head, and the layer's class and size.
type unitShare struct {
	class      string  // the layer's class, see classOf; "": the unit belongs to no layer
	layerBytes int64   // bytes of the layer with one of its experts
	share      float64 // the unit's bytes that a token uses, as a share of the bytes that it uses of the layer or of the head
}

// unitLoad is what a unit's kernels do in a step.
type unitLoad struct {
	matrices     []matrix // the unit's weights that products multiply with
	attention    bool     // the unit has the layer's attention
	state        bool     // the unit has the operation that goes on with the layer's state
	routes       bool     // the unit has the layer's router, which chooses experts
	ropes        bool     // one fused operation computes Q, K and V and rotates Q and K; in some steps a second kernel does the rotation, see waitsOf
	waits        int      // number of kernels that wait for the kernel before them, without fused operations
	fewRowsWaits int      // number of kernels that wait for the kernel before them, with the fused operations of steps of few rows
	head         bool     // the unit is a piece of the head or the final norm: only rows whose logits are needed pass through
	last         bool     // the unit belongs to the last layer: only rows whose logits are needed pass through its matrices, except for matrix.everyRow
}

// matrix is a weight that a product multiplies rows with.
type matrix struct {
	typ      gguf.Type // type of the weights
	rows     float64   // number of rows of the matrix
	bytes    float64   // bytes of the matrix
	flops    float64   // operations to multiply one vector
	everyRow bool      // in the last layer: keys and values need the product of every row of the step
}

// newCostModel finds out what the kernels of each of the plan's units do.
func newCostModel(p *plan.Plan, s Speeds, h *arch.Hyper) *costModel {
	m := &costModel{plan: p, speeds: s, hyper: h}
	if s.Rehearsal.Sound() {
		m.shares = sharesOf(h, p, over(float64(h.Experts.Used), float64(h.Experts.Count)))
	}
	at := map[string]int{} // by tensor: index of its unit
	for i := range p.Units {
		for _, t := range p.Units[i].Tensors {
			at[t.Name] = i
		}
	}
	has := func(name string) bool { _, ok := at[name]; return ok }
	every := everyRowWeights(h.Layer(h.BlockCount-1, has))
	m.loads = make([]unitLoad, len(p.Units))
	for i := range p.Units {
		m.loads[i].last = p.Units[i].Layer == h.BlockCount-1
		if p.Units[i].Kind == pack.Global { // rows of tables, and norms: no products
			m.loads[i].waits, m.loads[i].fewRowsWaits = 1, 1
			continue
		}
		for _, t := range p.Units[i].Tensors {
			if len(t.Shape) == 2 {
				m.loads[i].matrices = append(m.loads[i].matrices, matrix{
					typ: t.Type, rows: float64(t.Shape[0]), bytes: float64(t.Bytes), flops: 2 * float64(t.Shape[0]) * float64(t.Shape[1]), everyRow: every[t.Name],
				})
			}
		}
		if k := p.Units[i].Kind; k == pack.Head || k == pack.Norm {
			m.loads[i].head, m.loads[i].waits, m.loads[i].fewRowsWaits = true, 1, 1
		}
	}
	for l := range h.BlockCount {
		plain := h.Layer(l, has)
		m.addWaits(plain, at, func(l *unitLoad, n int) { l.waits += n })
		m.addWaits(arch.Fuse(plain), at, func(l *unitLoad, n int) { l.fewRowsWaits += n })
	}
	return m
}

// addWaits adds the waits of a layer's operations to the loads of their units, by calling count, and one wait for the first operation after
// the layer. It also calls [unitLoad.addKind]. at maps each tensor to its unit. An operation without a weight belongs to the unit of the operation before
// it. The operations of all experts count once: one dispatch computes them.
func (m *costModel) addWaits(ops []arch.Op, at map[string]int, count func(l *unitLoad, waits int)) {
	unit := -1
	var h hazards
	for i := range ops {
		for _, name := range ops[i].Weights() {
			if n, ok := at[name]; ok {
				unit = n
			}
		}
		if unit < 0 || ops[i].Kind == arch.KeepLogitRows { // KeepLogitRows is in one layer only, in steps of many rows: not counted
			continue
		}
		kernels := ops[i : i+1]
		if ops[i].Kind == arch.Experts {
			kernels = ops[i].Ops
		}
		for k := range kernels {
			if h.wait(&kernels[k]) {
				count(&m.loads[unit], 1)
			}
		}
		m.loads[unit].addKind(ops[i].Kind)
	}
	if unit >= 0 {
		count(&m.loads[unit], 1) // the next layer's first
	}
}

// hazards holds the values that operations have read and written since the last wait.
type hazards struct{ read, written [arch.NumValues]bool }

// wait reports whether o must wait for the operations before it: o reads or writes a value that one of them wrote, or writes a value that
// one of them read. If o must wait, wait empties h first. Then it adds the values that o reads and writes.
func (h *hazards) wait(o *arch.Op) (waits bool) {
	reads, writes := o.Reads(), o.Writes()
	for _, v := range reads {
		waits = waits || h.written[v]
	}
	for _, v := range writes {
		waits = waits || h.written[v] || h.read[v]
	}
	if waits {
		*h = hazards{}
	}
	for _, v := range reads {
		h.read[v] = true
	}
	for _, v := range writes {
		h.written[v] = true
	}
	return waits
}

// addKind notes that the unit has an operation of a kind whose time does not follow from the unit's matrices. It ignores other kinds.
func (l *unitLoad) addKind(kind arch.Kind) {
	switch kind {
	case arch.Route:
		l.routes = true
	case arch.RopedProducts:
		l.ropes = true
	case arch.Attention:
		l.attention = true
	case arch.GatedDeltaNet, arch.SelectiveScan, arch.StateSpace, arch.SSMConv:
		l.state = true
	}
}

// sharesOf makes the [unitShare] of each unit. used is the share of a layer's experts that a token uses. The final norm has share 0: a rehearsal's time of the
// head includes it.
func sharesOf(h *arch.Hyper, p *plan.Plan, used float64) []unitShare {
	layers, headBytes := map[int][]pack.Tensor{}, 0.0
	tokenBytes := map[int]float64{} // by layer: the bytes that a token uses
	for i := range p.Units {
		switch u := &p.Units[i]; u.Kind {
		case pack.Layer:
			layers[u.Layer] = append(layers[u.Layer], u.Tensors...)
			tokenBytes[u.Layer] += bytesOf(u.Tensors)
		case pack.Experts:
			for _, t := range u.Tensors {
				if t.Expert == 0 { // one stands for all
					layers[u.Layer] = append(layers[u.Layer], t)
				}
			}
			tokenBytes[u.Layer] += used * bytesOf(u.Tensors)
		case pack.Head:
			headBytes += bytesOf(u.Tensors)
		}
	}
	byLayer := map[int]unitShare{}
	for l, tensors := range layers {
		byLayer[l] = unitShare{class: classOf(h, l, tensors), layerBytes: int64(bytesOf(tensors))}
	}
	shares := make([]unitShare, len(p.Units))
	for i := range p.Units {
		u := &p.Units[i]
		switch shares[i] = byLayer[u.Layer]; u.Kind {
		case pack.Layer:
			shares[i].share = over(bytesOf(u.Tensors), tokenBytes[u.Layer])
		case pack.Experts:
			shares[i].share = over(used*bytesOf(u.Tensors), tokenBytes[u.Layer])
		case pack.Head:
			shares[i] = unitShare{share: over(bytesOf(u.Tensors), headBytes)}
		default:
			shares[i] = unitShare{}
		}
	}
	return shares
}

// bytesOf is the sum of the tensors' bytes.
func bytesOf(ts []pack.Tensor) (n float64) {
	for _, t := range ts {
		n += float64(t.Bytes)
	}
	return n
}

// everyRowWeights returns the names of the weights that the last layer applies to every row of a step: those that operations before
// [arch.KeepLogitRows] read. Later operations compute only rows whose logits are needed. ops are the operations of the last layer.
func everyRowWeights(ops []arch.Op) map[string]bool {
	names := map[string]bool{}
	for _, o := range ops {
		if o.Kind == arch.KeepLogitRows {
			break
		}
		for _, name := range o.Weights() {
			names[name] = true
		}
	}
	return names
}
