package predict

import (
	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/shaders"
)

// machine is a plan on a machine whose speeds are known: it gives each unit's work.
type machine struct {
	p     *plan.Plan
	s     Speeds
	h     *arch.Hyper
	loads []load
	parts []part      // where there is a rehearsal
	found *ExpertHits // of experts that share slots; nil: as if all are as likely

	resting float64 // how low its clock is; 0: it is not, 1: as low as it gets
}

// part is what of a layer a unit is.
type part struct {
	class string  // of the layer; "": it is no layer's
	bytes int64   // of the layer, one expert standing for all
	share float64 // of the layer's bytes, or the head's
}

// load is what a unit's kernels do for each row.
type load struct {
	matrices  []matrix
	attention bool
	routes    bool // experts are chosen
	turns     bool // products turn, in steps of few rows; else that is a kernel more
	waits     int  // kernels that wait for another
	few       int  // the same in steps of few rows, where the device has kernels of their own for them
	head      bool // only rows that want logits pass
	last      bool // of the last layer: only they pass through matrices that are not for every row
}

type matrix struct {
	t     gguf.Type
	rows  float64
	bytes float64
	flops float64 // for each vector
	every bool    // of the last layer: every row passes, for the cache
}

func newMachine(p *plan.Plan, s Speeds, h *arch.Hyper) *machine {
	m := &machine{p: p, s: s, h: h}
	if s.Rehearsal.Sound() {
		m.parts = partsOf(h, p, over(float64(h.Experts.Used), float64(h.Experts.Count)))
	}
	at := map[string]int{} // tensor -> unit
	for i := range p.Units {
		for _, t := range p.Units[i].Tensors {
			at[t.Name] = i
		}
	}
	has := func(name string) bool { _, ok := at[name]; return ok }
	every := everyRow(h.Layer(h.BlockCount-1, has))
	m.loads = make([]load, len(p.Units))
	for i := range p.Units {
		m.loads[i].last = p.Units[i].Layer == h.BlockCount-1
		for _, t := range p.Units[i].Tensors {
			if len(t.Shape) == 2 {
				m.loads[i].matrices = append(m.loads[i].matrices, matrix{t.Type, float64(t.Shape[0]), float64(t.Bytes), 2 * float64(t.Shape[0]) * float64(t.Shape[1]), every[t.Name]})
			}
		}
		if k := p.Units[i].Kind; k == pack.Head || k == pack.Norm {
			m.loads[i].head, m.loads[i].waits, m.loads[i].few = true, 1, 1
		}
	}
	for l := range h.BlockCount {
		plain := h.Layer(l, has)
		m.program(plain, at, func(l *load, n int) { l.waits += n })
		m.program(arch.Fuse(plain), at, func(l *load, n int) { l.few += n })
	}
	return m
}

// program counts the waits of a layer's ops and finds the unit of each: an op without a
// weight runs with the one before it. Ops that touch nothing another wrote run together.
func (m *machine) program(ops []arch.Op, at map[string]int, count func(l *load, waits int)) {
	unit := -1
	var written, read [arch.NumValues]bool
	for _, o := range ops {
		for _, name := range o.Weights() {
			if i, ok := at[name]; ok {
				unit = i
			}
		}
		if unit < 0 {
			continue
		}
		if o.Kind == arch.KeepAsked {
			continue // as if there were none: it is in one layer of steps of many rows
		}
		reads, writes := o.Reads(), o.Writes()
		if o.Kind == arch.Experts {
			count(&m.loads[unit], expertWaits)
		}
		wait := false
		for _, v := range reads {
			wait = wait || written[v]
		}
		for _, v := range writes {
			wait = wait || written[v] || read[v]
		}
		if wait {
			written, read = [arch.NumValues]bool{}, [arch.NumValues]bool{}
			count(&m.loads[unit], 1)
		}
		for _, v := range reads {
			read[v] = true
		}
		for _, v := range writes {
			written[v] = true
		}
		if o.Kind == arch.Route {
			m.loads[unit].routes = true
		}
		if o.Kind == arch.TurnedProducts {
			m.loads[unit].turns = true
		}
		if o.Kind == arch.Attention {
			m.loads[unit].attention = true
		}
	}
	if unit >= 0 {
		count(&m.loads[unit], 1) // the next layer's first
	}
}

// expertWaits are those within the products with experts: what is between gate, up and down waits for the former, down for it.
const expertWaits = 2

// partsOf says of each unit which layer it is a part of, or how much of the head. Of a layer's experts a token uses so
// large a part.
func partsOf(h *arch.Hyper, p *plan.Plan, used float64) []part {
	layers, heads := map[int][]pack.Tensor{}, 0.0
	bytes := map[int]float64{} // that a token uses of a layer
	for i := range p.Units {
		switch u := &p.Units[i]; u.Kind {
		case pack.Layer:
			layers[u.Layer] = append(layers[u.Layer], u.Tensors...)
			bytes[u.Layer] += bytesOf(u.Tensors)
		case pack.Experts:
			for _, t := range u.Tensors {
				if t.Expert == 0 { // one stands for all
					layers[u.Layer] = append(layers[u.Layer], t)
				}
			}
			bytes[u.Layer] += used * bytesOf(u.Tensors)
		case pack.Head:
			heads += bytesOf(u.Tensors)
		}
	}
	classes := map[int]part{}
	for l, tensors := range layers {
		classes[l] = part{class: classOf(h, l, tensors), bytes: int64(bytesOf(tensors))}
	}
	parts := make([]part, len(p.Units))
	for i := range p.Units {
		u := &p.Units[i]
		switch parts[i] = classes[u.Layer]; u.Kind {
		case pack.Layer:
			parts[i].share = over(bytesOf(u.Tensors), bytes[u.Layer])
		case pack.Experts:
			parts[i].share = over(used*bytesOf(u.Tensors), bytes[u.Layer])
		case pack.Head:
			parts[i] = part{share: over(bytesOf(u.Tensors), heads)}
		default:
			parts[i] = part{}
		}
	}
	return parts
}

func bytesOf(ts []pack.Tensor) (n float64) {
	for _, t := range ts {
		n += float64(t.Bytes)
	}
	return n
}

// host is the time of a step in which the device waits for the host; of a rehearsal, all
// that is not spent in layers or head.
func (m *machine) host(rows int) float64 {
	if r := m.s.Rehearsal; m.parts != nil {
		return r.of(r.Rest, StepShape{rows, rows})
	}
	return m.s.HostOverheadPerStep.Seconds()
}

// step is each unit's work in a step of rows whose last one sees ctx positions, and wants
// its logits where there is a head.
func (m *machine) step(rows, ctx int, head bool) []Work {
	works := make([]Work, len(m.p.Units))
	var compute, link float64
	alone := m.alone()
	layers := map[int]float64{}
	for i := range works {
		u, w := &m.p.Units[i], &works[i]
		w.OneQueue = m.s.OneQueue
		if m.loads[i].head && !head {
			continue // it does not come
		}
		asked := m.asked(i, rows, head)
		if m.parts != nil {
			w.ComputeSeconds = m.rehearsed(i, StepShape{rows, ctx}, asked, layers)
		} else {
			w.ComputeSeconds = m.byRates(i, rows, asked, ctx)
		}
		w.ComputeSeconds *= 1 + m.resting*(restingKernels-1)
		comes, read := m.comes(u, asked)
		if u.Tier == plan.Cached {
			m.waves(w, comes, asked)
			m.misses(w, u, comes, read, asked)
		}
		if !m.p.InPlace {
			w.LinkSeconds = over(comes, m.s.LinkBytesPerSec)
		}
		w.DiskSeconds = over(read, m.s.DiskBytesPerSec)
		compute, link = compute+w.ComputeSeconds, link+w.LinkSeconds
		if u.Tier == plan.Host || u.Tier == plan.Disk {
			w.ComputeSeconds += alone
		}
	}
	for i, slower := 0, m.linkUnderLoad(link, compute); i < len(works); i++ {
		works[i].LinkSeconds *= slower
	}
	return works
}

// alone is what a streamed unit takes of the compute lane because it is submitted by itself.
func (m *machine) alone() float64 {
	if m.parts == nil {
		return 0
	}
	s := &m.s.Rehearsal.Streamed
	return s.perUnit(over(float64(s.Bytes), m.s.LinkBytesPerSec), m.s.OneQueue)
}

// comes is how many of a unit's bytes a step of rows has uploaded, and how many of them read.
func (m *machine) comes(u *plan.Unit, rows int) (uploaded, read float64) {
	bytes := float64(u.Bytes)
	switch u.Tier {
	case plan.Host:
		return bytes, 0
	case plan.Disk:
		return bytes, bytes
	case plan.Cached:
		found := m.foundIn(u, rows)
		bytes *= found.Needed * (1 - found.HitRate)
		return bytes, bytes * found.DiskShare
	}
	return 0, 0
}

// linkUnderLoad is how many times as long a step's uploads take, because kernels read VRAM
// for a part of that time.
func (m *machine) linkUnderLoad(link, compute float64) float64 {
	idle, busy := m.s.LinkBytesPerSec, m.s.LinkBusyBytesPerSec
	if link <= 0 || busy <= 0 || busy >= idle || m.s.OneQueue {
		return 1
	}
	// bytes = busy × compute + idle × (time − compute), or busy × time.
	return min(1+(1-busy/idle)*compute/link, idle/busy)
}

// byRates is the seconds of a unit's kernels by the rates of each kind; every is how many rows pass through what is for every row.
func (m *machine) byRates(i, every, rows, ctx int) (t float64) {
	l, n := &m.loads[i], float64(rows)
	if l.head {
		n = 1
	}
	part, each := 1.0, n // of the matrices that are used; rows of each
	multiply, halves := m.s.FlopsPerSec, m.halvesRate(int(n))
	if m.p.Units[i].Experts > 0 {
		if m.s.ExpertFlopsPerSec > 0 {
			multiply = m.s.ExpertFlopsPerSec
		}
		halves = 0 // its products decode as they go
		part = m.touched(rows)
		each = max(1, n*float64(m.h.Experts.Used)/float64(m.h.Experts.Count)/part)
	}
	for _, x := range l.matrices {
		switch {
		case x.every && rows < every:
			t += m.product(x, float64(every), multiply) + over(x.bytes, m.halvesRate(every))
		case rows > 0:
			t += part * (m.product(x, each, multiply) + over(x.bytes, halves))
		}
	}
	if rows == 0 {
		return t
	}
	if l.routes {
		t += m.s.RouteTime.Seconds()
	}
	t += m.trip(i, rows)
	if l.attention {
		t += m.attention(rows, ctx)
	}
	waits := l.waits
	if m.p.Scratch.Q8.Bytes > 0 && (rows <= shaders.FewRows || m.p.Scratch.Halves.Bytes == 0) {
		waits = l.few
		if l.attention && rows <= shaders.FewRows {
			waits++ // its parts are put together
		}
		if l.turns && (rows > shaders.FewRows || shaders.KVQuantised(m.p.KV.Type)) {
			waits++
		}
	}
	return t + float64(waits)*m.s.DispatchTime.Seconds()
}

// halvesRate is how fast weights are brought into halves in a step of rows; 0: they are not.
func (m *machine) halvesRate(rows int) float64 {
	if rows > shaders.FewRows && m.p.Scratch.Halves.Bytes > 0 {
		return m.s.HalvesBytesPerSec
	}
	return 0
}

// product is the time of a matrix times n vectors: it is read once, and multiplied, at a rate where its type has no other.
func (m *machine) product(x matrix, n, multiply float64) float64 {
	read := m.s.DeviceBytesPerSec
	if r, ok := m.s.TypeBytesPerSec[x.t]; ok {
		read = r
	}
	if r, ok := m.s.TypeFlopsPerSec[x.t]; ok {
		multiply = r
	}
	t := 0.0
	if read > 0 {
		t = x.bytes/read + x.rows*m.s.TypeRowSeconds[x.t]
	}
	if n > 1 && multiply > 0 {
		t = max(t, n*x.flops/multiply)
	}
	return t
}

// attention is the time of one layer's rows over the cache. One row leaves most of a
// large device idle, and every further one costs nothing until it is full.
func (m *machine) attention(rows, ctx int) float64 {
	h := m.h
	first := float64(ctx - rows + 1)
	positions := float64(rows) * (first + float64(ctx)) / 2
	flops := 2 * positions * float64(h.HeadCount) * float64(h.KeyLength+h.ValueLength)
	rate := m.s.AttnFlopsPerSec
	if rate <= 0 {
		rate = m.s.FlopsPerSec
	} else if many := rate * float64(rows); m.s.FlopsPerSec > 0 {
		rate = min(many, max(rate, m.s.FlopsPerSec))
	} else {
		rate = many
	}
	t := 0.0
	if rate > 0 {
		t = flops / rate
	}
	if m.s.DeviceBytesPerSec > 0 { // the cache is read, if by nothing else held up
		bytes := float64(ctx) * float64(h.HeadCountKV) * float64(m.p.KV.RowBytes)
		t = max(t, bytes/m.s.DeviceBytesPerSec)
	}
	return t
}
