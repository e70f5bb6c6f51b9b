package conform

import (
	"fmt"

	"leat/shaders"
	"leat/shaders/gpu"
	"leat/shaders/ref"
)

func thereCases() []Case {
	var cases []Case
	for _, c := range []struct{ experts, count, absent int }{
		{8, 1, -1}, {8, 1, 0}, {60, 8, -1}, {60, 8, 0}, {60, 8, 7}, {8, 17, -1}, {8, 17, 0}, {128, 64, 63},
		{1024, 300, -1}, {1024, 300, 299}, // more than there are lanes
	} {
		cases = append(cases, expertsThere(c.experts, c.count, c.absent))
	}
	return cases
}

// expertsThere asks for experts, count of them, of which the one at place absent is not there; -1: all are. It asks where a
// step goes on, and where another layer has stopped it. Addresses with one half of 0 are there.
func expertsThere(experts, count, absent int) Case {
	return Case{Kernel: "experts_there", Shape: fmt.Sprintf("experts=%d count=%d absent=%d", experts, count, absent), MaxNMSE: nmseExact, build: func(j *job) error {
		table, ids := make([]uint64, experts), j.chosen((count+experts-1)/experts, min(count, experts), experts)[:count]
		used := map[uint32]bool{}
		for _, id := range ids {
			used[id] = true
		}
		for e := range table {
			if used[uint32(e)] { // the others are not there
				table[e] = []uint64{1 << 32, 256, 1<<40 + 256}[e%3]
			}
		}
		if absent >= 0 {
			table[ids[absent]] = 0
		}
		a := shaders.ExpertsThereArgs{Table: j.addr(j.uint64s(table)), IDs: j.addr(j.uint32s(ids)), Count: uint32(count), Layer: 17}
		starts := [][2]uint32{{1, 3}, {1 << 31, 3}, {0, 3}}
		var gos []uint64
		for i, there := range starts {
			at := j.uint32s(there[:])
			gos = append(gos, j.addr(at))
			ref.ExpertsThere(&there, table, ids, a.Layer)
			j.exact(fmt.Sprintf("go %d", i), at, words(there[:]))
		}
		j.record = func(r *gpu.Recorder) error {
			for _, at := range gos {
				a.Go = at
				if err := r.ExpertsThere(a); err != nil {
					return err
				}
			}
			return nil
		}
		return nil
	}}
}
