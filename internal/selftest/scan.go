package selftest

import (
	"fmt"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// steps are what time steps are made of, for channels or heads: raw (rows, n), what is added to it (n), and what a state fades by (n, state).
// Small ones are near 1e-3, as a trained model's are, where softplus must not lose digits.
func (j *job) steps(rows, n, state, gap int, small bool) (raw, dt, fade, skip ref.Mat) {
	raw, dt, fade, skip = j.normal(rows, n, gap), j.plain(1, n), j.plain(n, state), j.plain(1, n)
	for i, v := range fade.Data {
		fade.Data[i] = -0.5 - 0.2*v*v
	}
	for i := range dt.Data {
		if small {
			dt.Data[i] -= 7
		}
	}
	if !small {
		raw.Data[0] = -60
		raw.Data[(rows-1)*(n+gap)+n-1] = 30
	}
	return raw, dt, fade, skip
}

// scanPower is the mean square that states of few rows have at least, and outputs: one value alone may be near 0.
func scanPower(small bool) float64 {
	if small {
		return 1e-7
	}
	return 0.1
}

// both runs a reference for the rows of each of the two sequences, with its state, and returns the states after.
func (s *states) both(run func(part func(ref.Mat) ref.Mat, state ref.Mat)) (none, old ref.Mat) {
	none, old = ref.NewMat(s.rows, s.cols), ref.NewMat(s.rows, s.cols)
	copy(old.Data, s.start.Data)
	run(func(x ref.Mat) ref.Mat { first, _ := s.split(x); return first }, none)
	run(func(x ref.Mat) ref.Mat { _, second := s.split(x); return second }, old)
	return none, old
}

// ssmScan is the arguments of ssm_scan and what it reads.
type ssmScan struct {
	*states
	x, raw, bc, fade, skip, dt ref.Mat
}

func newSSMScan(j *job, rows, channels, state, gap int, small bool) *ssmScan {
	c := &ssmScan{x: j.normal(rows, channels, gap), bc: j.normal(rows, 2*state, gap), states: newStates(j, rows, state, channels)}
	c.raw, c.dt, c.fade, c.skip = j.steps(rows, channels, state, gap, small)
	return c
}

func (c *ssmScan) args(j *job) shaders.SSMScanArgs {
	return shaders.SSMScanArgs{
		X: j.addr(j.mat(c.x)), Delta: j.addr(j.mat(c.raw)), BC: j.addr(j.mat(c.bc)), A: j.addr(j.mat(c.fade)), D: j.addr(j.mat(c.skip)), Dt: j.addr(j.mat(c.dt)),
		States: c.table, Seq: j.addr(j.uint32s(c.seq)), Pos: j.addr(j.uint32s(c.pos)), Rows: uint32(c.x.Rows), Channels: uint32(c.x.Cols), State: uint32(c.fade.Cols),
		XStride: uint32(c.x.Stride), DeltaStride: uint32(c.raw.Stride), BCStride: uint32(c.bc.Stride), DstStride: uint32(c.x.Cols), Sequences: 2, StateOff: stateFront,
	}
}

// SSMScan tests ssm_scan with rows of two sequences, with small time steps or larger ones. gap is the number of values between rows.
func SSMScan(rows, channels, state, gap int, small bool) Case {
	shapeOf := fmt.Sprintf("rows=%d channels=%d state=%d gap=%d small=%t", rows, channels, state, gap, small)
	return Case{Kernel: "ssm_scan", Shape: shapeOf, MaxNMSE: nmseFine, build: func(j *job) error {
		c, want := newSSMScan(j, rows, channels, state, gap, small), shape(rows, channels, 0)
		clear(c.skip.Data[1:]) // else it hides what the states give
		none, old := c.both(func(part func(ref.Mat) ref.Mat, state ref.Mat) {
			ref.SSMScan(part(want), part(c.x), part(c.raw), part(c.bc), c.fade, c.skip.Data, c.dt.Data, state)
		})
		dst := j.space(want)
		j.sums("dst", dst, want, scanPower(small))
		c.wants(j, none, old, scanPower(small))
		a := c.args(j)
		a.Dst = j.addr(dst)
		j.record = func(r *kernels.Recorder) error { return kernels.SSMScan(r, a) }
		return nil
	}}
}

// SSMScanSameBits tests that ssm_scan gives the same bits for all rows of two sequences in one dispatch and row by row.
func SSMScanSameBits(rows, channels, state int) Case {
	return Case{Kernel: "ssm_scan", Shape: fmt.Sprintf("same bits rows=%d channels=%d state=%d", rows, channels, state), MaxNMSE: nmseFine, build: func(j *job) error {
		c, out := newSSMScan(j, rows, channels, state, 0, false), shape(rows, channels, 0)
		whole := c.args(j)
		runs := inTurn(j, c.states, out, whole, func(a *shaders.SSMScanArgs, o turn) {
			a.Dst = o.dst
			if o.alone {
				a.X, a.Delta, a.BC = whole.X+4*o.row*uint64(c.x.Stride), whole.Delta+4*o.row*uint64(c.raw.Stride), whole.BC+4*o.row*uint64(c.bc.Stride)
				a.States, a.Seq, a.Pos, a.Rows, a.Sequences = o.states, o.seq, o.pos, 1, 1
			}
		})
		j.record = func(r *kernels.Recorder) error { return allInTurn(r, runs, kernels.SSMScan) }
		return nil
	}}
}

// turn is where a run of [inTurn] reads and writes.
type turn struct {
	alone                 bool   // one row; if not, all of two sequences
	row                   uint64 // the row
	dst, states, seq, pos uint64 // addresses
}

// inTurn makes arguments for all rows of two sequences at once, then for each row alone, and demands the same bits of both outputs, which are shaped as out.
func inTurn[T any](j *job, s *states, out ref.Mat, whole T, set func(*T, turn)) []T {
	batch, single := j.space(out), j.space(out)
	j.same("rows", batch, single, out)
	j.spare = append(j.spare, part(s.after[0]), part(s.after[1]))
	a := whole
	set(&a, turn{dst: j.addr(batch)})
	runs := []T{a}
	zero := j.addr(j.uint32s([]uint32{0}))
	for i, table := range s.stepTables(j, out.Rows) {
		a := whole
		set(&a, turn{alone: true, row: uint64(i), dst: j.addr(single) + uint64(4*i*out.Stride), states: table, seq: zero, pos: j.addr(j.uint32s(s.pos[i : i+1]))})
		runs = append(runs, a)
	}
	return runs
}

// ssdScan is the arguments of ssd_scan and what it reads.
type ssdScan struct {
	*states
	m                      ref.SSD
	x, raw, fade, skip, dt ref.Mat
}

func newSSDScan(j *job, m ref.SSD, rows, gap int, small bool) *ssdScan {
	c := &ssdScan{m: m, x: j.normal(rows, m.Heads*m.Head+2*m.Groups*m.State, gap), states: newStates(j, rows, m.Heads*m.State, m.Head)}
	c.raw, c.dt, c.fade, c.skip = j.steps(rows, m.Heads, 1, gap, small)
	return c
}

func (c *ssdScan) args(j *job) shaders.SSDScanArgs {
	m := &c.m
	return shaders.SSDScanArgs{
		X: j.addr(j.mat(c.x)), Delta: j.addr(j.mat(c.raw)), A: j.addr(j.mat(c.fade)), D: j.addr(j.mat(c.skip)), Dt: j.addr(j.mat(c.dt)),
		States: c.table, Seq: j.addr(j.uint32s(c.seq)), Pos: j.addr(j.uint32s(c.pos)),
		Rows: uint32(c.x.Rows), Heads: uint32(m.Heads), Head: uint32(m.Head), Groups: uint32(m.Groups), State: uint32(m.State),
		XStride: uint32(c.x.Stride), DeltaStride: uint32(c.raw.Stride), DstStride: uint32(m.Heads * m.Head), Sequences: 2, StateOff: stateFront, DeltaMin: m.DeltaMin,
	}
}

// SSDScan tests ssd_scan with rows of two sequences, with small time steps or larger ones. gap is the number of values between rows.
func SSDScan(m ref.SSD, rows, gap int, small bool) Case {
	shapeOf := fmt.Sprintf("rows=%d heads=%d of %d groups=%d state=%d least=%g gap=%d small=%t", rows, m.Heads, m.Head, m.Groups, m.State, m.DeltaMin, gap, small)
	return Case{Kernel: "ssd_scan", Shape: shapeOf, MaxNMSE: nmseFine, build: func(j *job) error {
		c, want := newSSDScan(j, m, rows, gap, small), shape(rows, m.Heads*m.Head, 0)
		clear(c.skip.Data[1:]) // else it hides what the states give
		none, old := c.both(func(part func(ref.Mat) ref.Mat, state ref.Mat) {
			ref.SSDScan(&m, part(want), part(c.x), part(c.raw), c.fade.Data, c.skip.Data, c.dt.Data, state)
		})
		dst := j.space(want)
		j.sums("dst", dst, want, scanPower(small))
		c.wants(j, none, old, scanPower(small))
		a := c.args(j)
		a.Dst = j.addr(dst)
		j.record = func(r *kernels.Recorder) error { return kernels.SSDScan(r, a) }
		return nil
	}}
}

// SSDScanSameBits tests that ssd_scan gives the same bits for all rows of two sequences in one dispatch and row by row.
func SSDScanSameBits(m ref.SSD, rows int) Case {
	return Case{Kernel: "ssd_scan", Shape: fmt.Sprintf("same bits rows=%d heads=%d of %d groups=%d state=%d", rows, m.Heads, m.Head, m.Groups, m.State), MaxNMSE: nmseFine, build: func(j *job) error {
		c, out := newSSDScan(j, m, rows, 0, false), shape(rows, m.Heads*m.Head, 0)
		whole := c.args(j)
		runs := inTurn(j, c.states, out, whole, func(a *shaders.SSDScanArgs, o turn) {
			a.Dst = o.dst
			if o.alone {
				a.X, a.Delta = whole.X+4*o.row*uint64(c.x.Stride), whole.Delta+4*o.row*uint64(c.raw.Stride)
				a.States, a.Seq, a.Pos, a.Rows, a.Sequences = o.states, o.seq, o.pos, 1, 1
			}
		})
		j.record = func(r *kernels.Recorder) error { return allInTurn(r, runs, kernels.SSDScan) }
		return nil
	}}
}

// scanTests has the entries of the scans of Mamba.
var scanTests = table{
	"ssm_scan": {quick: func(*shaders.Kernel) []Case {
		return []Case{SSMScan(17, 200, 16, 4, false), SSMScan(2, 200, 16, 0, true)}
	}},
	"ssd_scan": {quick: func(*shaders.Kernel) []Case {
		m := ref.SSD{Heads: 8, Head: 16, Groups: 2, State: 16, DeltaMin: 0.001}
		return []Case{SSDScan(m, 17, 4, false), SSDScan(m, 2, 0, true)}
	}},
}
