package kernels

import (
	"fmt"

	"leat/shaders"
	"leat/vk"
)

// bytesNorm also stores its output quantised to int8, for the products that follow.
var bytesNorm = variant[Norm]{
	Rule: Rule{
		Op: "rms_norm", Variant: shaders.Q8, When: "decode, without cooperative matrices prompts too; weights are multiplied by the output, rows of whole blocks of 32",
		Needs: needsBytes, lacks: lacksBytes, kernels: []string{"rms_norm_q8"},
	},
	unfit: func(r *Recorder, a *Norm) string {
		switch {
		case !a.Multiplied:
			return "no product reads the output"
		case !a.plain():
			return notPlain
		case !r.prefersInt8():
			return "prompts go by cooperative matrices, or have no memory for bytes"
		case a.Rows == 0 || a.Cols%q8Block != 0 || (a.XStride|a.DstStride)%4 != 0 || runsPerLane(r, a.Cols) > shaders.MaxPer:
			return "rows are no whole blocks of 32, or too long"
		case shaders.Q8Size(a.Rows, a.Cols) > r.q8Room():
			return "there is no memory for bytes"
		case !r.usable(normChoice(r, a.Cols)):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *Norm) error {
		to := r.q8Slot(a.Dst, a.Rows, a.Cols, a.DstStride, 0)
		err := RMSNormQ8(r, shaders.RMSNormQ8Args{X: a.X, W: a.W, Dst: a.Dst, Q: to.q, S: to.sums,
			Rows: a.Rows, Cols: a.Cols, XStride: a.XStride, DstStride: a.DstStride, Eps: a.Eps})
		if err == nil {
			to.valid = true
		}
		return err
	},
}

// normLanes is the workgroup size of kernels that hold a whole row in registers (rms_norm_q8, tile_f16): enough lanes to have all loads of a
// row under way at the same time.
func normLanes(r *Recorder) uint32 {
	if r.k.dev.Physical.Type == vk.CPU {
		return 128
	}
	return min(512, r.k.dev.Physical.Limits.MaxWorkgroupInvocations)
}

// runsPerLane is how many runs of 4 values of a row each of [normLanes] lanes holds.
func runsPerLane(r *Recorder, cols uint32) uint32 { return (cols/4 + normLanes(r) - 1) / normLanes(r) }

// normChoice is the pipeline of rms_norm_q8 for rows of cols values.
func normChoice(r *Recorder, cols uint32) choice {
	return choice{op: "rms_norm", variant: shaders.Q8, lanes: normLanes(r), per: runsPerLane(r, cols)}
}

// NormParts is the most workgroups that [RMSNormQ8] may use for a row of cols values.
func NormParts(r *Recorder, cols uint32) uint32 { return runsPerLane(r, cols) }

// normParts is how many workgroups [RMSNormQ8] uses for a row: 1 on a CPU, which runs them one after another, and if Dst overlaps X.
func normParts(r *Recorder, a *shaders.RMSNormQ8Args) uint32 {
	if r.k.dev.Physical.Type == vk.CPU || f32s(a.X, a.Rows, a.Cols, a.XStride).overlaps(f32s(a.Dst, a.Rows, a.Cols, a.DstStride)) {
		return 1
	}
	return runsPerLane(r, a.Cols)
}

// RMSNormQ8 normalises rows of X (Rows, Cols) into Dst, and stores them as int8 too: values to Q, scales and sums to S. a.Parts is the number of
// workgroups of a row; 0: the number that suits the device.
func RMSNormQ8(r *Recorder, a shaders.RMSNormQ8Args) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: normChoice(r, a.Cols)}
	c.address("X", a.X)
	c.address("W", a.W)
	c.address("Dst", a.Dst)
	c.address("Q", a.Q)
	c.address("S", a.S)
	c.multiple("Cols", a.Cols, q8Block)
	c.atMost("Cols", a.Cols, shaders.MaxPer*c.lanes*4)
	c.stride("XStride", a.XStride, a.Cols)
	c.multiple("XStride", a.XStride, 4)
	c.stride("DstStride", a.DstStride, a.Cols)
	c.multiple("DstStride", a.DstStride, 4)
	if !(a.Eps >= 0) {
		c.require(false, "Eps", a.Eps, "0 or more")
	}
	if a.Parts == 0 {
		a.Parts = normParts(r, &a)
	}
	if a.Parts != 1 && a.Parts != c.per {
		c.require(false, "Parts", a.Parts, fmt.Sprintf("1 or %d, or 0", c.per))
	}
	n := float64(a.Rows) * float64(a.Cols)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Cols, a.XStride))
	t.read(f32s(a.W, 1, a.Cols, 0))
	t.write(f32s(a.Dst, a.Rows, a.Cols, a.DstStride))
	t.write(q8Bytes(a.Q, a.Rows, a.Cols))
	t.write(q8Scales(a.S, a.Rows, a.Cols))
	return record(r, &c, &a, a.Workgroups(), &t, cost{9 * n, 8 * n})
}
