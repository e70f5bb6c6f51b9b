package selftest

import (
	"fmt"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// ExpertsThere asks by experts_there for count experts, of which the one at place absent has no address; -1: all have one. An address of which
// one half is 0 counts as one.
func ExpertsThere(experts, count, absent int) Case {
	return Case{Kernel: "experts_there", Shape: fmt.Sprintf("experts=%d count=%d absent=%d", experts, count, absent), MaxNMSE: nmseExact, build: func(j *job) error {
		ids := chosenExperts(j, (count+experts-1)/experts, min(count, experts), experts)[:count]
		a := shaders.ExpertsThereArgs{There: newAddressTable(j, experts, ids, absent), IDs: j.addr(j.uint32s(ids)), Count: uint32(count)}
		j.record = func(r *kernels.Recorder) error { return kernels.ExpertsThere(r, a) }
		return nil
	}}
}

// newAddressTable is a table of experts, of which those of ids are there but for the one at place absent, and what must come of a look at it.
func newAddressTable(j *job, experts int, ids []uint32, absent int) uint64 {
	table := make([]uint64, experts)
	for _, id := range ids {
		table[id] = []uint64{1 << 32, 256, 1<<40 + 256}[id%3]
	}
	if absent >= 0 {
		table[ids[absent]] = 0
	}
	all := ref.ExpertsThere(table, ids)
	step, told := j.alloc(4), j.alloc(4*(1+len(ids)))
	j.exact("go", step, words([]uint32{all}))
	j.exact("told", told, words(append([]uint32{all}, ids...)))
	return j.addr(j.uint64s(append([]uint64{j.addr(step), j.addr(told)}, table...)))
}

// thereTests has the entry of experts_there.
var thereTests = table{"experts_there": {quick: func(*shaders.Kernel) []Case {
	return []Case{ExpertsThere(60, 8, 7), ExpertsThere(8, 17, 0)}
}}}
