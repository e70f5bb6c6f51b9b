package plan

import "slices"

// Shrink plans the same model with the same context and chunk within deviceBytes of VRAM, while the model runs. It gives VRAM back until the plan fits: first
// allocations of experts' slots, one at a time (each class keeps one); then blocks of resident units, one at a time, whose units become streamed. The ring is
// made or resized for them: if giving back blocks is not enough with a ring of the wanted size, it has the least size. All other units keep their places.
// Blocks of VRAM that are given back keep their index, with 0 bytes. The host tier keeps its blocks, and gets more if the RAM budget has room.
//
// The error is a [*BudgetError] if streaming all units needs more than deviceBytes; its Need says how much. A plan that fits already is
// returned as it is.
func (p *Plan) Shrink(deviceBytes int64) (*Plan, error) {
	if p.DeviceBytes <= deviceBytes {
		return p, nil
	}
	q := *p
	q.DeviceBudget, q.budget.DeviceBytes = deviceBytes, deviceBytes
	q.Units, q.Blocks, q.HostBlocks = slices.Clone(p.Units), slices.Clone(p.Blocks), slices.Clone(p.HostBlocks)
	if q.shrinkSlots(deviceBytes) {
		return &q, nil
	}
	var resident []int // indices of blocks with units that can be streamed
	for b, bytes := range q.Blocks {
		if bytes > 0 && b != len(q.Blocks)-1 { // the last is that of units outside the layers and the head
			resident = append(resident, b)
		}
	}
	fixed := q.DeviceBytes - sum(p.Ring)
	for _, b := range resident {
		fixed -= q.Blocks[b]
	}
	s := &sizing{budget: q.budget, units: q.Units}
	for _, least := range []bool{false, true} {
		left := slices.Clone(resident)
		for {
			q.Ring = s.ringFor(q.streamed(), least)
			if q.DeviceBytes = sum(q.Blocks) + sum(q.Ring) + q.KV.Bytes() + q.Scratch.Bytes + q.Experts.SlotBytes(); q.DeviceBytes <= deviceBytes {
				q.streamGivenBack()
				return &q, nil
			}
			if len(left) == 0 {
				break
			}
			i := q.blockToGiveBack(left)
			q.Blocks[left[i]] = 0
			left = slices.Delete(left, i, i+1)
		}
		if least {
			break
		}
		copy(q.Blocks, p.Blocks)
	}
	return nil, &BudgetError{What: "a ring of two units beside scratch and KV cache", Tier: VRAM, Need: fixed + sum(q.Ring), Have: deviceBytes}
}

// shrinkSlots gives back allocations of experts' slots until the plan takes at most deviceBytes, and reports whether it then does. Each class of
// slots keeps one allocation. If no experts share slots, shrinkSlots does nothing, and reports false.
func (p *Plan) shrinkSlots(deviceBytes int64) bool {
	if p.Experts == nil {
		return false
	}
	p.addTraffic(-1)
	p.Experts = p.Experts.clone()
	before := p.Experts.SlotBytes()
	for p.DeviceBytes > deviceBytes && p.Experts.shrink() {
		now := p.Experts.SlotBytes()
		p.DeviceBytes += now - before
		before = now
	}
	p.addTraffic(1)
	return p.DeviceBytes <= deviceBytes
}

// streamed marks the units that are streamed: those of tiers Host and Disk, and resident ones whose block was given back.
func (p *Plan) streamed() []bool {
	streamed := make([]bool, len(p.Units))
	for i := range p.Units {
		u := &p.Units[i]
		streamed[i] = u.Tier != Cached && (u.Tier != VRAM || p.Blocks[u.Block] == 0)
	}
	return streamed
}

// blockToGiveBack chooses one of blocks to give back, so that streamed units are spread as evenly as possible, and returns its index in blocks.
func (p *Plan) blockToGiveBack(blocks []int) (best int) {
	streamed, least := p.streamed(), 0.0
	for i, b := range blocks {
		if off := p.unevenness(streamed, b); i == 0 || off < least {
			best, least = i, off
		}
	}
	return best
}

// unevenness says how unevenly streamed bytes would be spread over the model if a block's units were streamed in addition to the marked ones. For each unit it
// compares the streamed bytes up to the unit with an even share of all bytes up to the unit; off is the mean square of the differences.
func (p *Plan) unevenness(streamed []bool, block int) (off float64) {
	var all, got float64
	joins := func(i int) bool {
		u := &p.Units[i]
		return streamed[i] || u.Tier == VRAM && u.Block == block
	}
	for i := range p.Units {
		all += float64(p.Units[i].Bytes)
		if joins(i) {
			got += float64(p.Units[i].Bytes)
		}
	}
	share, seen, found := got/all, 0.0, 0.0
	for i := range p.Units {
		seen += float64(p.Units[i].Bytes)
		if joins(i) {
			found += float64(p.Units[i].Bytes)
		}
		d := found - share*seen
		off += d * d
	}
	return off / float64(len(p.Units))
}

// streamGivenBack gives the resident units whose blocks were given back a new tier, Host or Disk.
func (p *Plan) streamGivenBack() {
	var units []*Unit
	for i := range p.Units {
		if u := &p.Units[i]; u.Tier == VRAM && p.Blocks[u.Block] == 0 {
			u.Tier = Disk
			units = append(units, u)
		}
	}
	p.setStreamTiers(units)
}
