package experts

import (
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/record"
	"leat/internal/weights"
	"leat/shaders"
)

// residents is the table of experts in VRAM by which the device looks up chosen experts. Each layer has a head, the addresses of its run
// flag and of its flag in choices, then (matrices, E) addresses; 0: not in VRAM. A uint32 run flag for each layer follows the table.
type residents struct {
	s     *slotted   // the runner that the table belongs to
	words []uint64   // the host's copy of the table, which is the newest
	stale []bool     // by layer: the device's part of the table differs from words
	names [][]string // by layer: tensor names of an expert's matrices; nil: the layer has no slots
}

// init makes the table, with no expert in VRAM.
func (t *residents) init(s *slotted) {
	h := s.o.Frame.Hyper
	*t = residents{s: s, stale: make([]bool, h.BlockCount), names: make([][]string, h.BlockCount)}
	t.words = make([]uint64, h.BlockCount*t.perLayer())
	for i, ops := range s.o.Ops {
		for k := range ops {
			if u := &s.o.Plan.Units[i]; ops[k].Kind == arch.Experts && u.Kind == pack.Experts {
				t.names[u.Layer], t.stale[u.Layer] = record.ExpertMatrices(&ops[k]), true
			}
		}
	}
	for l := range h.BlockCount {
		if t.names[l] != nil {
			head := t.words[l*t.perLayer():]
			head[0], head[1] = s.o.Scratch.Address+uint64(t.runFlagOff(l)), s.buffer.Address+uint64(s.ranFlagOff(l))
		}
	}
}

// perLayer is the number of uint64 that a layer has in the table.
func (t *residents) perLayer() int {
	return shaders.ThereHead + matrices*t.s.o.Frame.Hyper.Experts.Count
}

// entry is the index in words of the address of an expert's matrix.
func (t *residents) entry(layer, matrix, id int) int {
	return layer*t.perLayer() + shaders.ThereHead + matrix*t.s.o.Frame.Hyper.Experts.Count + id
}

// layerAddress is the device address of a layer's part of the table, which begins with its head. Lookups read it.
func (t *residents) layerAddress(layer int) uint64 {
	return t.s.o.Frame.At(t.s.o.Frame.Scratch.Residents) + uint64(8*layer*t.perLayer())
}

// entriesAddress is the device address of a layer's (matrices, E) addresses, after its head. Products with experts read it.
func (t *residents) entriesAddress(layer int) uint64 {
	return t.layerAddress(layer) + 8*shaders.ThereHead
}

// runFlagOff is the offset in the scratch of a layer's run flag: the device skips the layer's dispatches while it is 0.
func (t *residents) runFlagOff(layer int) int64 {
	return t.s.o.Frame.Scratch.Residents.Off + int64(8*len(t.words)+4*layer)
}

// note writes the addresses of a batch's experts to words. The compute queue must wait for their uploads before the next lookup.
func (t *residents) note(b *weights.Batch) error {
	t.markEvicted()
	for i := range b.Len() {
		address, id, unit, err := b.At(i)
		if err != nil {
			return err
		}
		for matrix, name := range t.names[unit.Layer] {
			tensor, ok := unit.Tensor(name)
			if !ok {
				return fmt.Errorf("tensor %q is not in %s", name, unit.Name)
			}
			at, to := t.entry(unit.Layer, matrix, id), address+uint64(tensor.UnitOff)
			if t.words[at] == to {
				break
			}
			t.words[at], t.stale[unit.Layer] = to, true
		}
	}
	return nil
}

// markEvicted zeroes the addresses of the experts that have lost their slots.
func (t *residents) markEvicted() {
	for _, x := range t.s.x.Evicted() {
		for matrix := range t.names[x.Layer] {
			t.words[t.entry(x.Layer, matrix, x.ID)] = 0
		}
		t.stale[x.Layer] = true
	}
}

// update records copies of the stale layers to the device, and clears the flags in choices, which the last lookups may have set.
func (t *residents) update() error {
	t.markEvicted()
	o, scratch := &t.s.o, t.s.o.Frame.Scratch
	via := t.s.waveTableOff(2)
	for l := range t.names {
		if t.names[l] == nil {
			continue
		}
		le.PutUint32(t.s.buffer.Mapped()[t.s.ranFlagOff(l):], 0)
		if t.stale[l] {
			t.stale[l] = false
			if err := copyTable(o, t.words, l*t.perLayer(), t.perLayer(), scratch.Residents.Off, via); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget marks all layers stale: after a failed step the device may not have run the last copies.
func (t *residents) forget() {
	for l := range t.stale {
		t.stale[l] = true
	}
}
