package kernels

import "leat/shaders"

// SSMScan is the scan of Mamba 1: for each row of a sequence in order it updates the state of each channel and computes the row's output. Dst may be X.
func SSMScan(r *Recorder, a shaders.SSMScanArgs) error {
	if a.Rows == 0 || a.Channels == 0 {
		return nil
	}
	c := check{choice: choice{op: "ssm_scan", state: a.State}}
	var t touch
	c.states(&t, a.States, a.Seq, a.Pos, a.Rows, a.Sequences, a.StateOff)
	c.positive("State", a.State)
	c.atMost("State", a.State, shaders.MaxScanState)
	checkRows(&c, &t, "X", a.X, a.Rows, a.Channels, a.XStride)
	checkRows(&c, &t, "Delta", a.Delta, a.Rows, a.Channels, a.DeltaStride)
	checkRows(&c, &t, "BC", a.BC, a.Rows, 2*a.State, a.BCStride)
	checkRows(&c, &t, "A", a.A, a.Channels, a.State, a.State)
	checkRows(&c, &t, "D", a.D, 1, a.Channels, a.Channels)
	checkRows(&c, &t, "Dt", a.Dt, 1, a.Channels, a.Channels)
	c.words("Dst", a.Dst)
	c.stride("DstStride", a.DstStride, a.Channels)
	t.write(f32s(a.Dst, a.Rows, a.Channels, a.DstStride))
	n, states := float64(a.Rows)*float64(a.Channels), float64(a.Channels)*float64(a.State)
	return record(r, &c, &a, a.Workgroups(), &t, cost{12*n + 8*states*float64(a.Sequences), 25 * n * float64(a.State)})
}

// SSDScan is the scan of Mamba 2: for each row of a sequence in order it updates the state of each head and computes the row's output.
func SSDScan(r *Recorder, a shaders.SSDScanArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: choice{op: "ssd_scan"}}
	var t touch
	c.states(&t, a.States, a.Seq, a.Pos, a.Rows, a.Sequences, a.StateOff)
	c.positive("Head", a.Head)
	c.positive("State", a.State)
	c.atMost("State", a.State, shaders.MaxState)
	c.positive("Groups", a.Groups)
	if a.Groups > 0 {
		c.multiple("Heads", a.Heads, a.Groups)
	}
	if !(a.DeltaMin >= 0) {
		c.require(false, "DeltaMin", a.DeltaMin, "0 or more")
	}
	checkRows(&c, &t, "X", a.X, a.Rows, a.Heads*a.Head+2*a.Groups*a.State, a.XStride)
	checkRows(&c, &t, "Delta", a.Delta, a.Rows, a.Heads, a.DeltaStride)
	checkRows(&c, &t, "A", a.A, 1, a.Heads, a.Heads)
	checkRows(&c, &t, "D", a.D, 1, a.Heads, a.Heads)
	checkRows(&c, &t, "Dt", a.Dt, 1, a.Heads, a.Heads)
	c.words("Dst", a.Dst)
	c.stride("DstStride", a.DstStride, a.Heads*a.Head)
	t.write(f32s(a.Dst, a.Rows, a.Heads*a.Head, a.DstStride))
	n := float64(a.Heads) * float64(a.Head) * float64(a.State)
	return record(r, &c, &a, a.Workgroups(), &t, cost{8 * n * float64(a.Rows), 5 * n * float64(a.Rows)})
}

// checkRows checks rows of floats that an op reads, and adds the read.
func checkRows(c *check, t *touch, what string, at uint64, n, cols, stride uint32) {
	c.words(what, at)
	c.stride(what+"Stride", stride, cols)
	t.read(f32s(at, n, cols, stride))
}
