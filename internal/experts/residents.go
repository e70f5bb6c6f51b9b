package experts

import (
	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/record"
	"leat/internal/weights"
	"leat/shaders"
)

// residentTable is the table of experts in VRAM in which the device looks up chosen experts. For each layer it has a head, which is the addresses of the
// layer's run flag and of its flag in choices, then (matrices, E) addresses; 0: not in VRAM. A uint32 run flag for each layer follows the table.
type residentTable struct {
	s        *slotted    // the runner that the table belongs to
	words    []uint64    // the host's copy of the table, which is always current
	stale    []bool      // by layer: the device's part of the table differs from words
	products [][]arch.Op // by layer: the products with an expert's matrices; nil: the layer has no slots
}

// init makes the host's copy of the table: layers with slots have a head and no experts yet, and are stale. [residentTable.update] writes the device's
// copy.
func (t *residentTable) init(s *slotted) {
	h := s.o.Frame.Hyper
	*t = residentTable{s: s, stale: make([]bool, h.BlockCount), products: make([][]arch.Op, h.BlockCount)}
	t.words = make([]uint64, h.BlockCount*t.perLayer())
	for i, ops := range s.o.Ops {
		for k := range ops {
			if u := &s.o.Plan.Units[i]; ops[k].Kind == arch.Experts && u.Kind == pack.Experts {
				t.products[u.Layer], t.stale[u.Layer] = record.ExpertProducts(&ops[k]), true
			}
		}
	}
	for l := range h.BlockCount {
		if t.products[l] != nil {
			head := t.words[l*t.perLayer():]
			head[0], head[1] = s.o.Scratch.Address+uint64(t.runFlagOff(l)), s.buffer.Address+uint64(s.ranFlagOff(l))
		}
	}
}

// perLayer is the number of uint64 that a layer has in the table.
func (t *residentTable) perLayer() int {
	return shaders.ResidentsHead + matrices*t.s.o.Frame.Hyper.Experts.Count
}

// entry is the index in words of the address of an expert's matrix.
func (t *residentTable) entry(layer, matrix, id int) int {
	return layer*t.perLayer() + shaders.ResidentsHead + matrix*t.s.o.Frame.Hyper.Experts.Count + id
}

// layerAddress is the device address of a layer's part of the table, which begins with its head. Lookups read it.
func (t *residentTable) layerAddress(layer int) uint64 {
	return t.s.o.Frame.At(t.s.o.Frame.Scratch.Residents) + uint64(8*layer*t.perLayer())
}

// entriesAddress is the device address of a layer's (matrices, E) addresses, after its head. Products with experts read it.
func (t *residentTable) entriesAddress(layer int) uint64 {
	return t.layerAddress(layer) + 8*shaders.ResidentsHead
}

// runFlagOff is the offset in the scratch of a layer's run flag: the device skips the layer's dispatches while it is 0.
func (t *residentTable) runFlagOff(layer int) int64 {
	return t.s.o.Frame.Scratch.Residents.Off + int64(8*len(t.words)+4*layer)
}

// noteBatch zeroes the addresses of evicted experts in words, and writes those of a batch's experts. The compute queue must wait for the
// experts' uploads before the next lookup.
func (t *residentTable) noteBatch(b *weights.Batch) error {
	t.markEvicted()
	for i := range b.Len() {
		address, id, unit, err := b.At(i)
		if err != nil {
			return err
		}
		for matrix := range t.products[unit.Layer] {
			off, _, err := record.MatrixOff(unit, &t.products[unit.Layer][matrix])
			if err != nil {
				return err
			}
			at, to := t.entry(unit.Layer, matrix, id), address+off
			if t.words[at] == to {
				break
			}
			t.words[at], t.stale[unit.Layer] = to, true
		}
	}
	return nil
}

// markEvicted zeroes the addresses in words of the experts that have lost their slots.
func (t *residentTable) markEvicted() {
	for _, x := range t.s.x.Evicted() {
		for matrix := range t.products[x.Layer] {
			t.words[t.entry(x.Layer, matrix, x.ID)] = 0
		}
		t.stale[x.Layer] = true
	}
}

// update records copies of the stale layers' part of the table to the device. It also sets the layers' flags in choices to 0, because earlier lookups may
// have set them: the host writes these immediately, before the recorded commands run.
func (t *residentTable) update() error {
	t.markEvicted()
	o, scratch := &t.s.o, t.s.o.Frame.Scratch
	via := t.s.waveTableOff(2)
	for l := range t.products {
		if t.products[l] == nil {
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

// markAllStale marks all layers as stale, so that they are copied to the device again: after a failed step the device may not have run the last copies.
func (t *residentTable) markAllStale() {
	for l := range t.stale {
		t.stale[l] = true
	}
}
