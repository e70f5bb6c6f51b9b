package engine

import (
	"leat/engine/plan"
	"leat/shaders/gpu"
	"leat/vk"
	"leat/vk/mem"
)

// PlanBudget is what o allows a model on a device of this machine, as [Load] will plan it.
func (o Options) PlanBudget(p *vk.PhysicalDevice) (plan.Budget, error) {
	o, err := o.validated()
	if err != nil {
		return plan.Budget{}, err
	}
	_, available, err := mem.RAM()
	if err != nil {
		o.Logger.Warn("host memory unknown: nothing is kept there", "error", err)
	}
	b := o.budget()
	b.DeviceBytes, b.HostBytes = o.budgets(p, available)
	f, err := p.Choose(o.Disable, o.Enable)
	if err != nil {
		return plan.Budget{}, err
	}
	b.Matrices, b.Few = gpu.Matrices(p, f), gpu.Few(p, f)
	if b.InPlace = o.inPlace(p); b.InPlace && o.HostBytes == 0 {
		if b.HostBytes = 0; o.DeviceBytes == 0 { // else what was asked for is the whole of one memory
			b.HostBytes = max(0, spare(available)-b.DeviceBytes)
		}
	}
	return b, nil
}

// BudgetOf is what o allows on a machine that is not this one: with so much VRAM and RAM.
func (o Options) BudgetOf(vramBytes, ramBytes int64, uma bool) (plan.Budget, error) {
	o, err := o.validated()
	if err != nil {
		return plan.Budget{}, err
	}
	b := o.budget()
	if b.DeviceBytes == 0 { // a desktop and the driver take some
		free := vramBytes / 16 * 15
		b.DeviceBytes = free - min(free/2, defaultReserve(free))
	}
	if b.HostBytes == 0 {
		available := ramBytes / 8 * 7
		b.HostBytes = spare(available)
	}
	if b.InPlace = uma && !o.Discrete; b.InPlace { // one memory, of which the VRAM is a share
		b.DeviceBytes, b.HostBytes = b.DeviceBytes+o.HostBytes, 0
	}
	return b, nil
}

// budget is what does not depend on the machine.
func (o *Options) budget() plan.Budget {
	return plan.Budget{DeviceBytes: o.DeviceBytes, HostBytes: o.HostBytes, ContextLength: o.ContextLength, Chunk: o.Chunk, KVType: o.kv(), Sessions: o.Sessions, RingBytes: o.RingBytes, Sweep: o.Sweep}
}
