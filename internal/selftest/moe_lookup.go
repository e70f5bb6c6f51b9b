package selftest

import (
	"fmt"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// LookupExperts tests lookup_experts with count experts. The expert at place absent among them has no address; -1: all have one. Some addresses have a half of
// 0, and must count as addresses.
func LookupExperts(experts, count, absent int) Case {
	return Case{Kernel: "lookup_experts", Shape: fmt.Sprintf("experts=%d count=%d absent=%d", experts, count, absent), MaxNMSE: nmseExact, build: func(j *job) error {
		ids := chosenExperts(j, (count+experts-1)/experts, min(count, experts), experts)[:count]
		a := shaders.LookupExpertsArgs{Residents: newAddressTable(j, experts, ids, absent), IDs: j.addr(j.uint32s(ids)), Count: uint32(count)}
		j.record = func(r *kernels.Recorder) error { return kernels.LookupExperts(r, a) }
		return nil
	}}
}

// newAddressTable makes the table of a lookup: the addresses of the lookup's two results, then for each expert an address, which is made up and never read, or 0
// for experts that are not in ids, and for ids[absent]; below 0 absent means none. It adds the wanted results to the job, and returns the table's address.
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
