package kernels

import (
	"fmt"

	"leat/shaders"
)

// SSMConv is the causal convolution of a state-space layer: of each column of X, over the rows of a sequence, plus the biases B unless B is 0. It reads and
// updates the sequence's state, which has the last rows before.
func SSMConv(r *Recorder, a shaders.SSMConvArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "ssm_conv"}}
	c.words("X", a.X)
	c.address("W", a.W)
	c.words("Dst", a.Dst)
	c.positive("Taps", a.Taps)
	c.atMost("Taps", a.Taps, shaders.MaxTaps)
	c.stride("XStride", a.XStride, a.Cols)
	c.stride("DstStride", a.DstStride, a.Cols)
	c.atMost("Linear", a.Linear, 1)
	var t touch
	c.states(&t, a.States, a.Seq, a.Pos, a.Rows, a.Sequences, a.StateOff)
	if a.B != 0 {
		c.words("B", a.B)
		t.read(f32s(a.B, 1, a.Cols, 0))
	}
	t.read(f32s(a.X, a.Rows, a.Cols, a.XStride))
	t.read(f32s(a.W, a.Cols, a.Taps, a.Taps))
	t.write(f32s(a.Dst, a.Rows, a.Cols, a.DstStride))
	n := float64(a.Rows) * float64(a.Cols)
	return record(r, &c, &a, a.Workgroups(), &t, cost{8 * n, 2 * n * float64(a.Taps)})
}

// GatedDeltaNet is a gated delta net: for each row of a sequence in order it updates the state of each head and computes the row's output.
func GatedDeltaNet(r *Recorder, a shaders.GatedDeltaNetArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: choice{op: "gated_delta_net"}}
	for _, p := range []struct {
		name string
		addr uint64
	}{{"X", a.X}, {"Beta", a.Beta}, {"Alpha", a.Alpha}, {"A", a.A}, {"Dt", a.Dt}, {"Dst", a.Dst}} {
		c.words(p.name, p.addr)
	}
	c.positive("KeyHeads", a.KeyHeads)
	if a.KeyHeads > 0 {
		c.multiple("Heads", a.Heads, a.KeyHeads)
	}
	c.positive("Head", a.Head)
	c.atMost("Head", a.Head, shaders.MaxState)
	c.stride("XStride", a.XStride, (2*a.KeyHeads+a.Heads)*a.Head)
	c.stride("DstStride", a.DstStride, a.Heads*a.Head)
	c.atMost("Tiled", a.Tiled, 1)
	c.atMost("ByChannel", a.ByChannel, 1)
	c.positive("Group", a.Group)
	if a.Group > 0 {
		if last := (a.Heads-1)/a.Group*a.Jump + min(a.Heads, a.Group) - 1 + a.AlphaOff; last >= a.GateStride {
			c.require(false, "GateStride", a.GateStride, fmt.Sprintf("more than %d, the last gate's place", last))
		}
	}
	var t touch
	c.states(&t, a.States, a.Seq, a.Pos, a.Rows, a.Sequences, a.StateOff)
	t.read(f32s(a.X, a.Rows, (2*a.KeyHeads+a.Heads)*a.Head, a.XStride))
	t.read(f32s(a.Beta, a.Rows, a.GateStride, a.GateStride))
	rates, width := a.Heads, a.GateStride
	if a.ByChannel != 0 {
		rates, width = a.Heads*a.Head, a.Heads*a.Head
	}
	t.read(f32s(a.Alpha, a.Rows, width, width))
	t.read(f32s(a.A, 1, a.Heads, 0))
	t.read(f32s(a.Dt, 1, rates, 0))
	t.write(f32s(a.Dst, a.Rows, a.Heads*a.Head, a.DstStride))
	n := float64(a.Heads) * float64(a.Head) * float64(a.Head)
	return record(r, &c, &a, a.Workgroups(), &t, cost{8 * n * float64(a.Sequences), 7 * n * float64(a.Rows)})
}

// states checks the addresses of the sequences' states and of each row's sequence and position, and adds reads of them. Writes of the states are not
// added, because no barrier is needed: in a step only one kernel accesses each part of a state.
func (c *check) states(t *touch, states, seq, pos uint64, rows, sequences, off uint32) {
	c.address("States", states)
	c.words("Seq", seq)
	c.words("Pos", pos)
	c.positive("Sequences", sequences)
	c.multiple("StateOff", off, 16)
	t.read(span{states, states + 16*uint64(sequences)})
	t.read(f32s(seq, 1, rows, 0))
	t.read(f32s(pos, 1, rows, 0))
}
