package experts

import (
	"encoding/binary"
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/vk"
	"leat/vk/mem"
)

var le = binary.LittleEndian // byte order of the values that host and device exchange

// choices is host memory into which the device writes which experts each layer's router chose: for Options.Routed, and for the host to see which
// experts are missing. Each layer with experts has a uint32, 1 if its lookup found all experts in VRAM, then (rows, Used) uint32 expert ids.
type choices struct {
	o      *Options   // the runner's options
	buffer *vk.Buffer // the host memory; nil: no code reads the choices
	nth    []int      // by layer of the model: the layer's index among those with experts
	layers int        // number of layers with experts
	ids    []uint16   // (rows, layers, Used), the argument of Options.Routed
}

// trialBytes is the size of the part of the buffer that [conditional.canSkip] uses.
const trialBytes = 16

// newChoices makes choices and, if slots or Options.Routed need it, allocates their buffer.
func newChoices(o *Options) (*choices, error) {
	c, h := &choices{o: o}, o.Frame.Hyper
	if h.Experts.Count == 0 || o.Weights.Experts() == nil && o.Routed == nil {
		return c, nil
	}
	c.nth = make([]int, h.BlockCount)
	last := -1
	for i := range o.Plan.Units {
		if u := &o.Plan.Units[i]; u.Kind == pack.Experts && u.Layer != last {
			last = u.Layer
			c.nth[last] = c.layers
			c.layers++
		}
	}
	c.ids = make([]uint16, o.Plan.Chunk*c.layers*h.Experts.Used)
	var err error
	c.buffer, err = o.Host.Alloc("chosen experts", int64(4*c.layers*c.words()+trialBytes), vk.Readback)
	return c, err
}

// close frees the buffer. Safe to call twice.
func (c *choices) close(host *mem.Heap) {
	if c.buffer != nil {
		host.Free(c.buffer)
	}
	c.buffer = nil
}

// words is the number of uint32 that a layer has in the buffer.
func (c *choices) words() int { return 1 + c.o.Plan.Chunk*c.o.Frame.Hyper.Experts.Used }

// ranFlagOff is the offset in the buffer of a layer's flag: the device sets it to 1 if the layer's lookup found all experts in VRAM, so that the device
// ran the layer and did not skip it.
func (c *choices) ranFlagOff(layer int) int64 { return int64(4 * c.nth[layer] * c.words()) }

// idsOff is the offset in the buffer of the expert ids that a layer's router chose.
func (c *choices) idsOff(layer int) int64 { return c.ranFlagOff(layer) + 4 }

// ranConditionally reports whether the device ran a conditional layer and did not skip it. The layer's submission must have ended.
func (c *choices) ranConditionally(layer int) bool {
	return le.Uint32(c.buffer.Mapped()[c.ranFlagOff(layer):]) != 0
}

// recordCopy records a copy of a layer's chosen experts from the scratch to the buffer, for all rows that the step computes.
func (c *choices) recordCopy(layer int) error {
	f := c.o.Frame
	n := int64(4 * f.StepRows.N * f.Hyper.Experts.Used)
	return f.Rec.Copy(c.buffer, c.idsOff(layer), c.o.Scratch, f.Scratch.Values[arch.Chosen].Off, n)
}

// RouterRecorded records a copy of a layer's chosen experts if Options.Routed is set. It records nothing if the open command buffer was recorded in an
// earlier step, because the copy is in it already.
func (c *choices) RouterRecorded(layer int) error {
	if c.o.Routed == nil || c.o.Queue.Commands.Again() {
		return nil
	}
	return c.recordCopy(layer)
}

// callRouted calls Options.Routed, if set, once with the choices of all layers of a step that the device has ended: (rows, layers, Used).
func (c *choices) callRouted() error {
	if c.o.Routed == nil || c.layers == 0 {
		return nil
	}
	m, rows, used := c.buffer.Mapped(), c.o.Frame.StepRows.N, c.o.Frame.Hyper.Experts.Used
	ids := c.ids[:rows*c.layers*used]
	for l := range c.layers {
		from := m[4*(l*c.words()+1):]
		for i := range rows * used {
			ids[(i/used*c.layers+l)*used+i%used] = uint16(le.Uint32(from[4*i:]))
		}
	}
	return c.o.Routed(rows, ids)
}

// countPairs sets pairs[id] to the number of rows that chose expert id of a layer, and returns how many experts were chosen by any row. The
// device must have written the choice. It fails if the router chose an expert that the layer does not have.
func (c *choices) countPairs(layer int, pairs []int32) (chosen int, err error) {
	clear(pairs)
	m := c.buffer.Mapped()[c.idsOff(layer):]
	for i := range c.o.Frame.StepRows.N * c.o.Frame.Hyper.Experts.Used {
		id := le.Uint32(m[4*i:])
		if int(id) >= len(pairs) {
			return 0, fmt.Errorf("the router of layer %d chose expert %d of %d", layer, id, len(pairs))
		}
		if pairs[id]++; pairs[id] == 1 {
			chosen++
		}
	}
	return chosen, nil
}
