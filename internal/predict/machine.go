package predict

import (
	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
)

// machine reckons the work of each unit of a plan, on a machine whose speeds are known.
type machine struct {
	p      *plan.Plan
	s      Speeds
	h      *arch.Hyper
	loads  []load      // of each unit
	shares []share     // of each unit; nil: nothing was rehearsed
	hits   *ExpertHits // how steps find experts that share slots; nil: as if all experts are as likely

	idle float64 // how far the device's clock is lowered; 0: not at all, 1: as far as it goes
}

// share says which share of a rehearsed layer's time, or of the head's, a unit takes.
type share struct {
	class      string  // the layer's class, see classOf; "": the unit belongs to no layer
	layerBytes int64   // bytes of the layer, with one expert for all
	share      float64 // the unit's share of the bytes that a token uses of its layer, or of the head
}

// load is what a unit's kernels do in a step.
type load struct {
	matrices     []matrix
	attention    bool
	routes       bool // its router chooses experts
	turns        bool // in steps of few rows, the kernel of the products also rotates Q and K; in others, one more kernel does
	waits        int  // kernels that wait for the one before
	fewRowsWaits int  // waits in steps of few rows, where the device has kernels for these
	head         bool // a piece of the head: only rows whose logits are needed pass through
	last         bool // a part of the last layer: only rows whose logits are needed pass through most matrices, see matrix.everyRow
}

// matrix is a weight that rows are multiplied with.
type matrix struct {
	typ      gguf.Type
	rows     float64
	bytes    float64
	flops    float64 // for each vector
	everyRow bool    // in the last layer: the cache needs it of every row
}

// newMachine finds out what the kernels of each of the plan's units do.
func newMachine(p *plan.Plan, s Speeds, h *arch.Hyper) *machine {
	m := &machine{p: p, s: s, h: h}
	if s.Rehearsal.Sound() {
		m.shares = sharesOf(h, p, over(float64(h.Experts.Used), float64(h.Experts.Count)))
	}
	at := map[string]int{} // tensor -> unit
	for i := range p.Units {
		for _, t := range p.Units[i].Tensors {
			at[t.Name] = i
		}
	}
	has := func(name string) bool { _, ok := at[name]; return ok }
	every := everyRowMatrices(h.Layer(h.BlockCount-1, has))
	m.loads = make([]load, len(p.Units))
	for i := range p.Units {
		m.loads[i].last = p.Units[i].Layer == h.BlockCount-1
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
		m.addWaits(plain, at, func(l *load, n int) { l.waits += n })
		m.addWaits(arch.Fuse(plain), at, func(l *load, n int) { l.fewRowsWaits += n })
	}
	return m
}

// addWaits adds the waits of a layer's operations to the loads of their units, by calling count. An operation without a weight runs in the
// unit of the operation before it. The operations of one expert stand for those of all.
func (m *machine) addWaits(ops []arch.Op, at map[string]int, count func(l *load, waits int)) {
	unit := -1
	var h hazards
	for i := range ops {
		for _, name := range ops[i].Weights() {
			if n, ok := at[name]; ok {
				unit = n
			}
		}
		if unit < 0 || ops[i].Kind == arch.KeepAsked { // KeepAsked is in one layer only, in steps of many rows: not counted
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
		m.loads[unit].note(ops[i].Kind)
	}
	if unit >= 0 {
		count(&m.loads[unit], 1) // the next layer's first
	}
}

// hazards holds the values that operations have read and written since the last wait.
type hazards struct{ read, written [arch.NumValues]bool }

// wait reports whether o must wait for the operations before it: it reads or writes a value that one of them wrote, or writes one that
// one of them read. It adds what o reads and writes.
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

// note keeps that a unit has an op whose time does not follow from its matrices.
func (l *load) note(kind arch.Kind) {
	switch kind {
	case arch.Route:
		l.routes = true
	case arch.TurnedProducts:
		l.turns = true
	case arch.Attention:
		l.attention = true
	}
}

// sharesOf is each unit's share of its layer, or of the head. used is the share of a layer's experts that a token uses.
func sharesOf(h *arch.Hyper, p *plan.Plan, used float64) []share {
	layers, headBytes := map[int][]pack.Tensor{}, 0.0
	tokenBytes := map[int]float64{} // that a token uses of a layer
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
	byLayer := map[int]share{}
	for l, tensors := range layers {
		byLayer[l] = share{class: classOf(h, l, tensors), layerBytes: int64(bytesOf(tensors))}
	}
	shares := make([]share, len(p.Units))
	for i := range p.Units {
		u := &p.Units[i]
		switch shares[i] = byLayer[u.Layer]; u.Kind {
		case pack.Layer:
			shares[i].share = over(bytesOf(u.Tensors), tokenBytes[u.Layer])
		case pack.Experts:
			shares[i].share = over(used*bytesOf(u.Tensors), tokenBytes[u.Layer])
		case pack.Head:
			shares[i] = share{share: over(bytesOf(u.Tensors), headBytes)}
		default:
			shares[i] = share{}
		}
	}
	return shares
}

func bytesOf(ts []pack.Tensor) (n float64) {
	for _, t := range ts {
		n += float64(t.Bytes)
	}
	return n
}

// everyRowMatrices names the matrices that the last layer, whose operations are ops, multiplies by every row.
func everyRowMatrices(ops []arch.Op) map[string]bool {
	names := map[string]bool{}
	for _, o := range ops {
		if o.Kind == arch.KeepAsked {
			break
		}
		for _, name := range o.Weights() {
			names[name] = true
		}
	}
	return names
}
