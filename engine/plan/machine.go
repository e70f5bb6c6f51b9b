package plan

import (
	"leat/decompose/pack"
	"leat/engine/arch"
	"leat/gguf"
	"leat/shaders"
)

// machine is a plan on a machine whose speeds are known: it gives each unit's work.
type machine struct {
	p     *Plan
	s     Speeds
	h     *arch.Hyper
	loads []load
	host  float64 // seconds
}

// load is what a unit's kernels do for each row.
type load struct {
	matrices  []matrix
	attention bool
	waits     int  // kernels that wait for another
	few       int  // the same in steps of few rows, where the device has kernels of their own for them
	head      bool // only rows that want logits pass
}

type matrix struct {
	t     gguf.Type
	rows  float64
	bytes float64
	flops float64 // for each vector
}

func newMachine(p *Plan, s Speeds, h *arch.Hyper) *machine {
	m := &machine{p: p, s: s, h: h, host: s.HostOverheadPerStep.Seconds()}
	at := map[string]int{} // tensor -> unit
	m.loads = make([]load, len(p.Units))
	for i := range p.Units {
		for _, t := range p.Units[i].Tensors {
			at[t.Name] = i
			if len(t.Shape) == 2 {
				m.loads[i].matrices = append(m.loads[i].matrices, matrix{t.Type, float64(t.Shape[0]), float64(t.Bytes), 2 * float64(t.Shape[0]) * float64(t.Shape[1])})
			}
		}
		if k := p.Units[i].Kind; k == pack.Head || k == pack.Norm {
			m.loads[i].head, m.loads[i].waits, m.loads[i].few = true, 1, 1
		}
	}
	has := func(name string) bool { _, ok := at[name]; return ok }
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
		reads, writes := touches(o)
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
		if o.Kind == arch.Attention {
			m.loads[unit].attention = true
		}
	}
	if unit >= 0 {
		count(&m.loads[unit], 1) // the next layer's first
	}
}

// touches lists the values an op reads and writes. The cache stands in as K.
func touches(o arch.Op) (reads, writes []arch.Value) {
	switch o.Kind {
	case arch.RMSNorm, arch.MulMat, arch.Gated:
		return []arch.Value{o.A}, []arch.Value{o.Dst}
	case arch.Bias, arch.RopeTurn:
		return nil, []arch.Value{o.Dst}
	case arch.KVAppend:
		return []arch.Value{arch.V}, []arch.Value{arch.K}
	case arch.Attention:
		return []arch.Value{arch.Q, arch.K}, []arch.Value{o.Dst}
	}
	if o.Kind == arch.Siblings {
		for _, p := range o.Ops {
			writes = append(writes, p.Dst)
		}
		return []arch.Value{o.A}, writes
	}
	if o.Kind == arch.TurnedAppend {
		return []arch.Value{arch.V}, []arch.Value{arch.Q, arch.K}
	}
	return []arch.Value{o.A, o.B}, []arch.Value{o.Dst}
}

// step is each unit's work in a step of rows whose last one sees ctx positions.
func (m *machine) step(rows, ctx int) []Work {
	works := make([]Work, len(m.p.Units))
	for i := range works {
		u, l := &m.p.Units[i], &m.loads[i]
		w := &works[i]
		n := float64(rows)
		if l.head {
			n = 1
		}
		for _, x := range l.matrices {
			w.ComputeSeconds += m.product(x, n)
		}
		if l.attention {
			w.ComputeSeconds += m.attention(rows, ctx)
		}
		waits := l.waits
		if m.p.Scratch.Q8.Bytes > 0 && rows <= shaders.FewRows {
			waits = l.few
			if l.attention {
				waits++ // its parts are put together
			}
		}
		w.ComputeSeconds += float64(waits) * m.s.DispatchTime.Seconds()
		if !u.Resident() && m.s.LinkBytesPerSec > 0 {
			w.LinkSeconds = float64(u.Bytes) / (m.s.LinkBytesPerSec * linkUnderLoad)
		}
		if u.Tier == Disk && m.s.DiskBytesPerSec > 0 {
			w.DiskSeconds = float64(u.Bytes) / m.s.DiskBytesPerSec
		}
	}
	return works
}

// product is the time of a matrix times n vectors: it is read once, and multiplied.
func (m *machine) product(x matrix, n float64) float64 {
	read, multiply := m.s.DeviceBytesPerSec, m.s.FlopsPerSec
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
		bytes := float64(ctx) * float64(h.HeadCountKV) * float64(h.KeyLength+h.ValueLength) * float64(m.p.KV.Element)
		t = max(t, bytes/m.s.DeviceBytesPerSec)
	}
	return t
}

// flow runs steps one after another through three lanes that work at the same time: the
// disk ahead of the link by what staging holds, the link ahead of the kernels by what
// the ring holds.
type flow struct {
	m                        *machine
	ring                     int64
	ahead                    float64 // seconds the disk reads before its bytes can go on
	read, uploaded, computed float64 // when each lane is free
	inRing                   []held
	used                     int64
}

// held is a unit in the ring, and when its memory comes free.
type held struct {
	bytes int64
	free  float64
}

func (m *machine) newFlow() *flow {
	f := &flow{m: m, ring: m.p.RingSize()}
	if m.s.DiskBytesPerSec > 0 {
		f.ahead = float64(int64(m.p.Staging.Slots)*m.p.Staging.SlotBytes) / m.s.DiskBytesPerSec
	}
	return f
}

// RingSize is the VRAM that streamed units pass through.
func (p *Plan) RingSize() int64 {
	return p.DeviceBytes - sum(p.Blocks) - p.KV.Bytes() - p.Scratch.Bytes
}

// run lets one step flow through and returns when its last kernel ends.
func (f *flow) run(works []Work) (end float64) {
	f.computed += f.m.host
	for i, w := range works {
		u := &f.m.p.Units[i]
		if !u.Resident() {
			f.computed = max(f.computed, f.upload(u.Bytes, w))
		}
		f.computed += w.ComputeSeconds
		if !u.Resident() {
			f.inRing[len(f.inRing)-1].free = f.computed
		}
	}
	return f.computed
}

// upload returns when a unit's bytes are there.
func (f *flow) upload(bytes int64, w Work) float64 {
	start := f.uploaded
	for f.used+bytes > f.ring && len(f.inRing) > 0 {
		start = max(start, f.inRing[0].free)
		f.used -= f.inRing[0].bytes
		f.inRing = f.inRing[1:]
	}
	f.used += bytes
	f.inRing = append(f.inRing, held{bytes: bytes})
	end := start + w.LinkSeconds
	if w.DiskSeconds > 0 { // piece by piece: what the disk has read is on its way
		f.read = max(f.read, start-f.ahead) + w.DiskSeconds
		end = max(end, f.read)
	}
	f.uploaded = end
	return end
}
