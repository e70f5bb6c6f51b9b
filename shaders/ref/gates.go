package ref

import "math"

// Gates says where a row's gates lie: column c's is value c/Group*Jump + c%Group*Step.
type Gates struct{ Group, Jump, Step int }

// SigmoidMul is x * sigmoid(gate).
func SigmoidMul(dst, x Mat /* (T, D) */, gate Mat /* (T, ..) */, g Gates) {
	for t := range dst.Rows {
		for c := range dst.Cols {
			v := gate.Row(t)[c/g.Group*g.Jump+c%g.Group*g.Step]
			dst.Row(t)[c] = float32(float64(x.Row(t)[c]) / (1 + math.Exp(-float64(v))))
		}
	}
}

// SwiGLUOAI is g * sigmoid(alpha*g) * (u + 1), where g is gate but at most limit, and u is up but at most limit from 0.
func SwiGLUOAI(dst, gate, up []float32 /* (T*F) */, alpha, limit float32) {
	for i := range dst {
		g, most := min(float64(gate[i]), float64(limit)), float64(limit)
		u := max(-most, min(most, float64(up[i])))
		dst[i] = float32(g / (1 + math.Exp(-float64(alpha)*g)) * (u + 1))
	}
}
