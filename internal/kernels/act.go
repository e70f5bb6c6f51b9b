package kernels

import (
	"fmt"

	"leat/shaders"
)

// Act is an activation function without parameters.
type Act uint8

// The activation functions.
const (
	SiLU    Act = iota // x * sigmoid(x), of gated units alone
	GELU               // gelu in its tanh form
	GELUErf            // gelu in its exact form
	ReLU2              // max(x, 0)², without a gate alone
)

// The ops of activation functions with a gate and without; "": there is none.
var (
	gatedOps = [...]string{SiLU: "swiglu", GELU: "geglu", GELUErf: "geglu_erf", ReLU2: ""}
	unaryOps = [...]string{SiLU: "", GELU: "gelu", GELUErf: "gelu_erf", ReLU2: "relu2"}
)

// Unary is Dst = act(X). Dst may be X.
func Unary(r *Recorder, act Act, a shaders.UnaryArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: unaryOps[act]}}
	t := checkEach(&c, a.X, a.Dst, a.Count)
	return record(r, &c, &a, a.Workgroups(), &t, eachCost(a.Count, 8, 20))
}

// XIELU is Dst = xielu(X), whose parameters are a layer's. Dst may be X.
func XIELU(r *Recorder, a shaders.XIELUArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "xielu"}}
	t := checkEach(&c, a.X, a.Dst, a.Count)
	return record(r, &c, &a, a.Workgroups(), &t, eachCost(a.Count, 8, 20))
}

// Clamp is Dst = X, but at least Min and at most Max. Dst may be X.
func Clamp(r *Recorder, a shaders.ClampArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "clamp"}}
	t := checkEach(&c, a.X, a.Dst, a.Count)
	if !(a.Min <= a.Max) {
		c.require(false, "Min", a.Min, fmt.Sprintf("at most Max, %g", a.Max))
	}
	return record(r, &c, &a, a.Workgroups(), &t, eachCost(a.Count, 8, 2))
}
