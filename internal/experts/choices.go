package experts

import (
	"encoding/binary"
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/vk"
	"leat/vk/mem"
)

var le = binary.LittleEndian

// choices is host memory into which the device writes what each layer's router chose: for each layer that has experts a word that says
// whether it ran without asking the host, then (rows, Used) uint32 experts.
type choices struct {
	o      *Options
	buffer *vk.Buffer // nil: no one wants to know
	nth    []int      // layer of the model -> of those that have experts
	layers int
	ids    []uint16 // (rows, layers, Used), for Options.Routed
}

// trialBytes is room behind the choices for [ahead.skips].
const trialBytes = 16

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

func (c *choices) close(host *mem.Heap) {
	if c.buffer != nil {
		host.Free(c.buffer)
	}
	c.buffer = nil
}

// words is how many words a layer has.
func (c *choices) words() int { return 1 + c.o.Plan.Chunk*c.o.Frame.Hyper.Experts.Used }

// ranFlagOff is where a layer says whether it ran without asking the host, idsOff where its choice lies.
func (c *choices) ranFlagOff(layer int) int64 { return int64(4 * c.nth[layer] * c.words()) }
func (c *choices) idsOff(layer int) int64     { return c.ranFlagOff(layer) + 4 }

// went reports whether a layer ran without asking the host, once the host can see it.
func (c *choices) went(layer int) bool {
	return le.Uint32(c.buffer.Mapped()[c.ranFlagOff(layer):]) != 0
}

// record records a copy of a layer's choice, for the rows at hand.
func (c *choices) record(layer int) error {
	f := c.o.Frame
	n := int64(4 * f.AtHand.N * f.Hyper.Experts.Used)
	return f.Rec.Copy(c.buffer, c.idsOff(layer), c.o.Scratch, f.Scratch.Values[arch.Chosen].Off, n)
}

// Chosen records a copy of a layer's choice where all choices are told of.
func (c *choices) Chosen(layer int) error {
	if c.o.Routed == nil || c.o.Queue.Commands.Again() {
		return nil
	}
	return c.record(layer)
}

// tell tells Options.Routed of a step that is over.
func (c *choices) tell() error {
	if c.o.Routed == nil || c.layers == 0 {
		return nil
	}
	m, rows, used := c.buffer.Mapped(), c.o.Frame.AtHand.N, c.o.Frame.Hyper.Experts.Used
	ids := c.ids[:rows*c.layers*used]
	for l := range c.layers {
		from := m[4*(l*c.words()+1):]
		for i := range rows * used {
			ids[(i/used*c.layers+l)*used+i%used] = uint16(le.Uint32(from[4*i:]))
		}
	}
	return c.o.Routed(rows, ids)
}

// count counts, by expert, the rows that chose it, and returns how many were chosen at all.
func (c *choices) count(layer int, pairs []int32) (chosen int, err error) {
	clear(pairs)
	m := c.buffer.Mapped()[c.idsOff(layer):]
	for i := range c.o.Frame.AtHand.N * c.o.Frame.Hyper.Experts.Used {
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
