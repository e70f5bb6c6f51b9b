package kernels

import (
	"fmt"

	"leat/shaders"
)

// topKVariants are the ways to choose experts by given scores, the best first.
var topKVariants = []*variant[shaders.TopKMoEArgs]{&heldTopK, &plainTopK}

// TopKMoE chooses each row's experts by the router's scores X, and computes their weights.
func TopKMoE(r *Recorder, a shaders.TopKMoEArgs) error {
	r.args.topK = a
	_, err := recordBy(r, topKVariants, &r.args.topK)
	return err
}

// plainTopK holds a row's scores in shared memory.
var plainTopK = variant[shaders.TopKMoEArgs]{
	Rule:   Rule{Op: "topk_moe", Variant: shaders.FP32},
	record: func(r *Recorder, a *shaders.TopKMoEArgs) error { return TopKMoEVariant(r, shaders.FP32, *a) },
}

// TopKMoEVariant is TopKMoE by the variant FP32 or Held.
func TopKMoEVariant(r *Recorder, variant string, a shaders.TopKMoEArgs) error {
	if a.Rows == 0 {
		return nil
	}
	c := check{choice: choice{op: "topk_moe"}}
	if variant == shaders.Held {
		c.choice = heldChoice(r.k.dev.Physical, a.Experts)
		c.atMost("Experts", a.Experts, shaders.MaxPer*c.lanes)
		c.atMost("Gating", a.Gating&^shaders.GateNormalised, shaders.GateLate)
	}
	c.words("X", a.X)
	c.words("IDs", a.IDs)
	c.words("Weights", a.Weights)
	c.chooses(&a)
	n := float64(a.Rows) * float64(a.Experts)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Experts, a.Experts))
	if a.Bias != 0 {
		c.address("Bias", a.Bias)
		t.read(f32s(a.Bias, 1, a.Experts, 0))
	}
	if a.Scales != 0 {
		c.words("Scales", a.Scales)
		t.read(f32s(a.Scales, 1, a.Experts, 0))
	}
	c.lookup(a.Residents, a.Rows, &t)
	t.write(f32s(a.IDs, a.Rows, a.Used, a.Used))
	t.write(f32s(a.Weights, a.Rows, a.Used, a.Used))
	return record(r, &c, &a, a.Workgroups(), &t, cost{4 * n, 8 * n})
}

// chooses checks the arguments that say how experts are chosen: numbers, gating and groups.
func (c *check) chooses(a *shaders.TopKMoEArgs) {
	c.positive("Experts", a.Experts)
	c.atMost("Experts", a.Experts, shaders.MaxExperts)
	c.positive("Used", a.Used)
	c.atMost("Used", a.Used, a.Experts)
	c.atMost("Gating", a.Gating&^shaders.GateNormalised, shaders.GateSparse)
	if a.Groups > 1 {
		c.groups(a)
	}
}

// groups checks that expert groups are of one size, and that those chosen have at least a.Used experts.
func (c *check) groups(a *shaders.TopKMoEArgs) {
	c.multiple("Experts", a.Experts, a.Groups)
	c.positive("GroupsUsed", a.GroupsUsed)
	c.atMost("GroupsUsed", a.GroupsUsed, a.Groups)
	c.positive("GroupBest", a.GroupBest)
	c.atMost("GroupBest", a.GroupBest, 2)
	if least := (uint64(a.Used)*uint64(a.Groups) + uint64(a.Experts) - 1) / uint64(a.Experts); uint64(a.GroupsUsed) < least {
		c.require(false, "GroupsUsed", a.GroupsUsed, fmt.Sprintf("at least %d: these groups have fewer than %d experts", least, a.Used))
	}
}
