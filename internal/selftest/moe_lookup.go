package selftest

import (
	"fmt"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// LookupExperts asks by lookup_experts for count experts, of which the one at place absent has no address; -1: all have one. An address of which
// one half is 0 counts as one.
func LookupExperts(experts, count, absent int) Case {
	return Case{Kernel: "lookup_experts", Shape: fmt.Sprintf("experts=%d count=%d absent=%d", experts, count, absent), MaxNMSE: nmseExact, build: func(j *job) error {
		ids := chosenExperts(j, (count+experts-1)/experts, min(count, experts), experts)[:count]
		a := shaders.LookupExpertsArgs{Residents: newAddressTable(j, experts, ids, absent), IDs: j.addr(j.uint32s(ids)), Count: uint32(count)}
		j.record = func(r *kernels.Recorder) error { return kernels.LookupExperts(r, a) }
		return nil
	}}
}

// newAddressTable makes a table of experts in which those of ids have addresses, except the one at place absent, and adds the results that a lookup of ids in
// it must give.
func newAddressTable(j *job, experts int, ids []uint32, absent int) uint64 {
	table := make([]uint64, experts)
	for _, id := range ids {
		table[id] = []uint64{1 << 32, 256, 1<<40 + 256}[id%3]
	}
	if absent >= 0 {
		table[ids[absent]] = 0
	}
	all := ref.LookupExperts(table, ids)
	step, told := j.alloc(4), j.alloc(4*(1+len(ids)))
	j.exact("go", step, words([]uint32{all}))
	j.exact("told", told, words(append([]uint32{all}, ids...)))
	return j.addr(j.uint64s(append([]uint64{j.addr(step), j.addr(told)}, table...)))
}

// lookupTests has the entry of lookup_experts.
var lookupTests = table{"lookup_experts": {quick: func(*shaders.Kernel) []Case {
	return []Case{LookupExperts(60, 8, 7), LookupExperts(8, 17, 0)}
}}}
