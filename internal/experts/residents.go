package experts

import (
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/record"
	"leat/internal/weights"
	"leat/shaders"
)

// residents is the device's table of the experts in VRAM: for each layer a head, which says where the device and the host want to know
// whether all chosen ones are there, then (matrices, E) addresses; 0: it is not in VRAM. Behind all layers there is a word for each, by which its
// dispatches run or are skipped.
type residents struct {
	s     *slotted
	words []uint64   // as the device's is to be
	stale []bool     // by layer: the device's is not
	names [][]string // by layer: an expert's matrices; nil: the layer has no slots
}

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

// perLayer is the words of a layer.
func (t *residents) perLayer() int {
	return shaders.ThereHead + matrices*t.s.o.Frame.Hyper.Experts.Count
}

// entry is where the table has an expert's matrix.
func (t *residents) entry(layer, matrix, id int) int {
	return layer*t.perLayer() + shaders.ThereHead + matrix*t.s.o.Frame.Hyper.Experts.Count + id
}

// head is where the device has a layer's part, and address its addresses.
func (t *residents) head(layer int) uint64 {
	return t.s.o.Frame.At(t.s.o.Frame.Scratch.There) + uint64(8*layer*t.perLayer())
}
func (t *residents) address(layer int) uint64 { return t.head(layer) + 8*shaders.ThereHead }

// runFlagOff is where the scratch has the word by which a layer's dispatches run.
func (t *residents) runFlagOff(layer int) int64 {
	return t.s.o.Frame.Scratch.There.Off + int64(8*len(t.words)+4*layer)
}

// note notes where the experts of a batch are, which the device's queue has waited for, or will before it looks.
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

// markEvicted notes which experts have lost their slots.
func (t *residents) markEvicted() {
	for _, x := range t.s.x.Evicted() {
		for matrix := range t.names[x.Layer] {
			t.words[t.entry(x.Layer, matrix, x.ID)] = 0
		}
		t.stale[x.Layer] = true
	}
}

// update records copies of what the device does not know yet, and takes back what the host was told of layers of the step before.
func (t *residents) update() error {
	t.markEvicted()
	o, scratch := &t.s.o, t.s.o.Frame.Scratch
	via := t.s.waveTable(2)
	for l := range t.names {
		if t.names[l] == nil {
			continue
		}
		le.PutUint32(t.s.buffer.Mapped()[t.s.ranFlagOff(l):], 0)
		if t.stale[l] {
			t.stale[l] = false
			if err := copyTable(o, t.words, l*t.perLayer(), t.perLayer(), scratch.There.Off, via); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget has all of the table copied anew: what the device was to be told, it may not have been.
func (t *residents) forget() {
	for l := range t.stale {
		t.stale[l] = true
	}
}
