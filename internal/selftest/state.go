package selftest

import (
	"fmt"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// states are the recurrent states of two sequences in a step: the first sequence begins in the step, the second goes on. Each state is in a buffer after
// stateFront bytes of another layer's state.
type states struct {
	rows, cols    int      // shape of the layer's state
	before, after [2]span  // buffers of the two states before and after the step
	table         uint64   // address of the table of these buffers
	pos, seq      []uint32 // position and sequence of each row
	start         ref.Mat  // state of the second sequence before the step
}

const stateFront = 48 // bytes of another layer's state at the start of each buffer

// newStates makes states of the given shape, and assigns n rows to the two sequences.
func newStates(j *job, n, rows, cols int) *states {
	s := &states{rows: rows, cols: cols, start: j.normal(rows, cols, 0)}
	for i := range n {
		if i < (n+1)/2 {
			s.pos, s.seq = append(s.pos, uint32(i)), append(s.seq, 0)
		} else {
			s.pos, s.seq = append(s.pos, uint32(7+i)), append(s.seq, 1)
		}
	}
	var addrs []uint64
	for i := range 2 {
		s.before[i], s.after[i] = j.alloc(stateFront+4*rows*cols), j.alloc(stateFront+4*rows*cols)
		addrs = append(addrs, j.addr(s.before[i]), j.addr(s.after[i]))
	}
	if rows*cols > 0 {
		putMat(j.at(s.before[1])[stateFront:], s.start)
	}
	s.table = j.addr(j.uint64s(addrs))
	return s
}

// part is the layer's part of a state.
func part(s span) span { return span{s.off + stateFront, s.n - stateFront} }

// split returns the rows of a matrix that belong to the first sequence, and those that belong to the second.
func (s *states) split(x ref.Mat) (first, second ref.Mat) {
	n := (x.Rows + 1) / 2
	first, second = x, x
	first.Rows, second.Rows = n, x.Rows-n
	second.Data = x.Data[min(len(x.Data), n*x.Stride):]
	return first, second
}

// wants adds the wanted states after the step. power is as in [job.sums].
func (s *states) wants(j *job, first, second ref.Mat, power float64) {
	if s.rows == 0 {
		return
	}
	j.sums("first state", part(s.after[0]), first, power)
	if len(s.pos) > 1 {
		j.sums("second state", part(s.after[1]), second, power)
	}
}

// SSMConv tests ssm_conv, which convolves each column with its own taps, with rows of two sequences and their states. biased: each column has a bias; linear:
// there is no silu. gap is the number of values between rows.
func SSMConv(rows, cols, taps, gap int, biased, linear bool) Case {
	shapeOf := fmt.Sprintf("rows=%d cols=%d taps=%d gap=%d biased=%t linear=%t", rows, cols, taps, gap, biased, linear)
	return Case{Kernel: "ssm_conv", Shape: shapeOf, MaxNMSE: nmseCurved, build: func(j *job) error {
		x, w, want := j.normal(rows, cols, gap), j.normal(cols, taps, 0), shape(rows, cols, 0)
		var b ref.Mat
		if biased {
			b = j.plain(1, cols)
		}
		s := newStates(j, rows, taps-1, cols)
		none, old := ref.NewMat(taps-1, cols), ref.NewMat(taps-1, cols)
		copy(old.Data, s.start.Data)
		x1, x2 := s.split(x)
		y1, y2 := s.split(want)
		ref.SSMConv(y1, x1, w, b.Data, linear, none)
		ref.SSMConv(y2, x2, w, b.Data, linear, old)
		dst := j.space(want)
		j.sums("dst", dst, want, 0.5)
		s.wants(j, none, old, 1)
		a := s.convArgs(j, x, w)
		a.X, a.Dst, a.Seq, a.Pos = j.addr(j.mat(x)), j.addr(dst), j.addr(j.uint32s(s.seq)), j.addr(j.uint32s(s.pos))
		if biased {
			a.B = j.addr(j.mat(b))
		}
		if linear {
			a.Linear = 1
		}
		j.record = func(r *kernels.Recorder) error { return kernels.SSMConv(r, a) }
		return nil
	}}
}

// convArgs returns the arguments of ssm_conv for rows shaped like x and the taps w. The caller sets X, Dst, Seq and Pos.
func (s *states) convArgs(j *job, x, w ref.Mat) shaders.SSMConvArgs {
	return shaders.SSMConvArgs{
		W: j.addr(j.mat(w)), States: s.table, Rows: uint32(x.Rows), Cols: uint32(x.Cols), Taps: uint32(w.Cols),
		XStride: uint32(x.Stride), DstStride: uint32(x.Cols), Sequences: 2, StateOff: stateFront,
	}
}

// stepTables makes a table of states for each step, to run the rows one by one. Each step starts from the state that the last step of the same sequence left.
func (s *states) stepTables(j *job, steps int) []uint64 {
	var tables []uint64
	one, other := [2]span{}, [2]span{}
	for i := range 2 {
		one[i], other[i] = j.alloc(stateFront+4*s.rows*s.cols), j.alloc(stateFront+4*s.rows*s.cols)
		j.spare = append(j.spare, one[i], other[i])
	}
	copy(j.at(one[1]), j.at(s.before[1]))
	for step := range steps {
		i := s.seq[step]
		addrs := make([]uint64, 4)
		addrs[0], addrs[1] = j.addr(one[i]), j.addr(other[i])
		one[i], other[i] = other[i], one[i]
		tables = append(tables, j.addr(j.uint64s(addrs[:2])))
	}
	return tables
}

// SSMConvSameBits tests that ssm_conv gives the same bits for all rows of two sequences in one dispatch and row by row.
func SSMConvSameBits(rows, cols, taps int) Case {
	return Case{Kernel: "ssm_conv", Shape: fmt.Sprintf("same bits rows=%d cols=%d taps=%d", rows, cols, taps), MaxNMSE: nmseCurved, build: func(j *job) error {
		x, w, out := j.normal(rows, cols, 0), j.normal(cols, taps, 0), shape(rows, cols, 0)
		s := newStates(j, rows, taps-1, cols)
		in, batch, single := j.addr(j.mat(x)), j.space(out), j.space(out)
		j.same("rows", batch, single, out)
		j.spare = append(j.spare, part(s.after[0]), part(s.after[1]))
		a := s.convArgs(j, x, w)
		a.X, a.Dst, a.Seq, a.Pos = in, j.addr(batch), j.addr(j.uint32s(s.seq)), j.addr(j.uint32s(s.pos))
		runs := []shaders.SSMConvArgs{a}
		zero := j.addr(j.uint32s([]uint32{0}))
		for i, table := range s.stepTables(j, rows) {
			off := uint64(4 * i * cols)
			a.X, a.Dst, a.States, a.Seq, a.Pos, a.Rows, a.Sequences = in+off, j.addr(single)+off, table, zero, j.addr(j.uint32s(s.pos[i:i+1])), 1, 1
			runs = append(runs, a)
		}
		j.record = func(r *kernels.Recorder) error { return allInTurn(r, runs, kernels.SSMConv) }
		return nil
	}}
}

// net returns the arguments of gated_delta_net for these inputs and states. fade is the tensor A. The caller sets Dst.
func (s *states) net(j *job, d ref.DeltaNet, x, beta, alpha ref.Mat, fade, dt ref.Mat) shaders.GatedDeltaNetArgs {
	a := shaders.GatedDeltaNetArgs{
		X: j.addr(j.mat(x)), Beta: j.addr(j.mat(beta)), Alpha: j.addr(j.mat(alpha)), A: j.addr(j.mat(fade)), Dt: j.addr(j.mat(dt)),
		States: s.table, Seq: j.addr(j.uint32s(s.seq)), Pos: j.addr(j.uint32s(s.pos)),
		Rows: uint32(x.Rows), KeyHeads: uint32(d.KeyHeads), Heads: uint32(d.Heads), Head: uint32(d.Head), XStride: uint32(x.Stride), DstStride: uint32(d.Heads * d.Head),
		GateStride: uint32(beta.Stride), Group: uint32(d.Heads), Sequences: 2, StateOff: stateFront,
	}
	if d.Tiled {
		a.Tiled = 1
	}
	if d.ByChannel {
		a.ByChannel = 1
	}
	return a
}

// newGates makes random betas and alphas, some of them extreme, and the tensors A (fade) and Dt, which set how fast each head's state fades.
func newGates(j *job, rows int, d *ref.DeltaNet) (beta, alpha, fade, dt ref.Mat) {
	heads, rates := d.Heads, d.Heads
	if d.ByChannel {
		rates *= d.Head
	}
	beta, alpha, fade, dt = j.normal(rows, heads, 0), j.scaled(rows, rates, 0, 2), j.normal(1, heads, 0), j.normal(1, rates, 0)
	for i, v := range fade.Data {
		fade.Data[i] = -0.3 - 0.05*v
	}
	alpha.Data[0] = -60
	alpha.Data[len(alpha.Data)-1] = 30
	return beta, alpha, fade, dt
}

// DeltaNet tests gated_delta_net with rows of two sequences. With together betas and alphas are in one matrix: for each key head its betas, then its alphas. gap
// is the number of values between rows.
func DeltaNet(d ref.DeltaNet, rows, gap int, together bool) Case {
	shapeOf := fmt.Sprintf("rows=%d heads=%d/%d of %d tiled=%t channels=%t gap=%d together=%t", rows, d.Heads, d.KeyHeads, d.Head, d.Tiled, d.ByChannel, gap, together)
	return Case{Kernel: "gated_delta_net", Shape: shapeOf, MaxNMSE: nmseCurved, build: func(j *job) error {
		x, want := j.normal(rows, (2*d.KeyHeads+d.Heads)*d.Head, gap), shape(rows, d.Heads*d.Head, 0)
		beta, alpha, fade, dt := newGates(j, rows, &d)
		s := newStates(j, rows, d.Heads*d.Head, d.Head)
		none, old := ref.NewMat(s.rows, s.cols), ref.NewMat(s.rows, s.cols)
		copy(old.Data, s.start.Data)
		x1, x2 := s.split(x)
		y1, y2 := s.split(want)
		b1, b2 := s.split(beta)
		a1, a2 := s.split(alpha)
		ref.GatedDeltaNet(&d, y1, x1, b1, a1, fade.Data, dt.Data, none)
		ref.GatedDeltaNet(&d, y2, x2, b2, a2, fade.Data, dt.Data, old)
		dst := j.space(want)
		j.sums("dst", dst, want, 0.1)
		s.wants(j, none, old, 0.1)
		a := s.net(j, d, x, beta, alpha, fade, dt)
		if together {
			a.Group, a.GateStride = uint32(d.Heads/d.KeyHeads), uint32(2*d.Heads)
			a.Jump, a.AlphaOff = 2*a.Group, a.Group
			both := ref.NewMat(rows, 2*d.Heads)
			for t := range rows {
				for h := range d.Heads {
					at := h/int(a.Group)*int(a.Jump) + h%int(a.Group)
					both.Row(t)[at], both.Row(t)[at+int(a.Group)] = beta.Row(t)[h], alpha.Row(t)[h]
				}
			}
			a.Beta = j.addr(j.mat(both))
			a.Alpha = a.Beta
		}
		a.Dst = j.addr(dst)
		j.record = func(r *kernels.Recorder) error { return kernels.GatedDeltaNet(r, a) }
		return nil
	}}
}

// DeltaNetSameBits tests that gated_delta_net gives the same bits for all rows of two sequences in one dispatch and row by row.
func DeltaNetSameBits(d ref.DeltaNet, rows int) Case {
	return Case{Kernel: "gated_delta_net", Shape: fmt.Sprintf("same bits rows=%d heads=%d/%d of %d channels=%t", rows, d.Heads, d.KeyHeads, d.Head, d.ByChannel), MaxNMSE: nmseCurved, build: func(j *job) error {
		x, out := j.normal(rows, (2*d.KeyHeads+d.Heads)*d.Head, 0), shape(rows, d.Heads*d.Head, 0)
		beta, alpha, fade, dt := newGates(j, rows, &d)
		s := newStates(j, rows, d.Heads*d.Head, d.Head)
		batch, single := j.space(out), j.space(out)
		j.same("rows", batch, single, out)
		j.spare = append(j.spare, part(s.after[0]), part(s.after[1]))
		a := s.net(j, d, x, beta, alpha, fade, dt)
		a.Dst = j.addr(batch)
		runs := []shaders.GatedDeltaNetArgs{a}
		zero, whole := j.addr(j.uint32s([]uint32{0})), a
		for i, table := range s.stepTables(j, rows) {
			row := uint64(i)
			a.X, a.Dst = whole.X+4*row*uint64(x.Stride), j.addr(single)+4*row*uint64(out.Stride)
			a.Beta, a.Alpha = whole.Beta+4*row*uint64(d.Heads), whole.Alpha+4*row*uint64(alpha.Cols)
			a.States, a.Seq, a.Pos, a.Rows, a.Sequences = table, zero, j.addr(j.uint32s(s.pos[i:i+1])), 1, 1
			runs = append(runs, a)
		}
		j.record = func(r *kernels.Recorder) error { return allInTurn(r, runs, kernels.GatedDeltaNet) }
		return nil
	}}
}

// allInTurn is [all] with a barrier before each run, because the recorder does not know that a run reads states that the last run wrote.
func allInTurn[T any](r *kernels.Recorder, runs []T, record func(*kernels.Recorder, T) error) error {
	return all(runs, func(a T) error {
		r.Barrier()
		return record(r, a)
	})
}

// stateTests has the entries of the ops with a state.
var stateTests = table{
	"ssm_conv": {quick: func(*shaders.Kernel) []Case {
		return []Case{SSMConv(33, 100, 4, 3, false, false), SSMConv(9, 100, 3, 0, true, true)}
	}},
	"gated_delta_net": {quick: func(*shaders.Kernel) []Case {
		return []Case{DeltaNet(ref.DeltaNet{KeyHeads: 2, Heads: 4, Head: 32, Tiled: true}, 17, 4, true), DeltaNet(ref.DeltaNet{KeyHeads: 2, Heads: 2, Head: 32, ByChannel: true}, 17, 4, false)}
	}},
}
