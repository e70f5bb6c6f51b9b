package engine

// The functions of this file, and [Rehearse], are for leat's own commands. They speak of internal packages, which other modules can't
// import, and may change with any commit.

import (
	"leat/internal/arch"
	"leat/internal/budget"
	"leat/internal/plan"
	"leat/internal/trace"
)

// Details is what leat's own commands want to know of a loaded model: internal types, with no promise.
type Details struct {
	Plan  plan.Plan // in force just now
	Hyper arch.Hyper
}

// DetailsOf is for leat's own commands: others have [Model.Plan] and [Model.Info].
func DetailsOf(m *Model) Details {
	return Details{*m.runner.shrinker.now.Load(), *m.prepared.hyper}
}

// TraceOf is for leat's own commands: a trace that keeps spans, and the device's time by kernel, where the caller can read them. Either may be nil.
func TraceOf(spans *trace.Recorder, kernels *trace.Ops) *Trace { return &Trace{spans, kernels} }

// RequestOf is for leat's own commands: what [Load] would ask of a machine's memory. The error is an [*OptionError].
func RequestOf(o Options) (budget.Request, error) {
	o, err := o.validated()
	return requestOf(&o), err
}

// requestOf is [RequestOf] for options that are valid.
func requestOf(o *Options) budget.Request {
	t := &o.Tuning
	return budget.Request{
		DeviceBytes: o.DeviceBytes, HostBytes: o.HostBytes, ContextLength: o.ContextLength, Sessions: o.Sessions, KVType: o.kv(),
		Chunk: t.Chunk, RingBytes: t.Layout.RingBytes, Sweep: t.Layout.sweep(),
		OneQueue: t.OneQueue, Discrete: t.Discrete, Disable: t.Disable, Enable: t.Enable,
	}
}
