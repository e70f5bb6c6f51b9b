package kernels

import (
	"leat/shaders"
	"leat/vk"
)

// heldTopK holds a row's scores in the registers of one subgroup; it gives the same bits as [plainTopK].
var heldTopK = variant[shaders.TopKMoEArgs]{
	Rule: Rule{
		Op: "topk_moe", Variant: shaders.Held, When: "up to 16 experts for each of a subgroup's first 32 lanes, not weighed as by SparseMixer",
		Needs: needsSubgroups, lacks: lacksSubgroups, kernels: []string{"topk_moe_held"},
	},
	unfit: func(r *Recorder, a *shaders.TopKMoEArgs) string {
		switch {
		case a.Gating&^shaders.GateNormalised == shaders.GateSparse:
			return "weights as by SparseMixer"
		case !HoldsScores(r, a.Experts):
			return "more experts than the lanes hold"
		case !r.usable(heldChoice(r.k.dev.Physical, a.Experts)):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *shaders.TopKMoEArgs) error { return TopKMoEVariant(r, shaders.Held, *a) },
}

// HoldsScores reports whether the device can run [heldTopK] for that many experts: it has subgroups, and their registers hold the scores.
func HoldsScores(r *Recorder, experts uint32) bool {
	return experts > 0 && heldChoice(r.k.dev.Physical, experts).per <= shaders.MaxPer && lacksSubgroups(r.k) == ""
}

// heldChoice is the pipeline of [heldTopK] for that many experts. Its workgroup should be one subgroup.
func heldChoice(p *vk.PhysicalDevice, experts uint32) choice {
	lanes := min(shaders.HeldLanes, max(minSubgroup, uint32(p.Limits.Subgroup)))
	return choice{op: "topk_moe", variant: shaders.Held, lanes: lanes, per: (max(1, experts) + lanes - 1) / lanes}
}
