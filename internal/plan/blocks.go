package plan

// sum is the sum of ns.
func sum(ns []int64) (t int64) {
	for _, n := range ns {
		t += n
	}
	return t
}

// placeHost gives each unit of the host tier a block of RAM and an offset, and returns the blocks' sizes. The index of the
// first block is first. Each unit lies in one block. A block is larger than maxBlock only if it holds a single unit.
func placeHost(units []*Unit, first int) []int64 {
	var blocks []int64
	for _, u := range units {
		bytes := HostExtents(&u.Unit, nil)
		last := len(blocks) - 1
		if last < 0 || blocks[last]+bytes > maxBlock {
			blocks = append(blocks, 0)
			last++
		}
		u.Block, u.Off = first+last, blocks[last]
		blocks[last] += bytes
	}
	return rounded(blocks)
}

// rounded rounds the sizes of blocks up to the granule of allocations, in place.
func rounded(blocks []int64) []int64 {
	for i := range blocks {
		blocks[i] = roundUp(blocks[i], granule)
	}
	return blocks
}

// residentBlock is the size of a block of resident units: small enough to be given back
// when another program needs VRAM, large enough that a driver's rounding doesn't matter.
const residentBlock = 256 << 20

// placeResident gives each resident unit a block of VRAM and an offset, and returns the blocks' sizes, about blockBytes. Each unit goes to the
// block that is emptiest so far, or to a new block if that one would exceed maxBlock. So each block holds units from all over the model, and if a
// block is given back, the units of the others are still spread evenly.
func placeResident(units []*Unit, blockBytes int64) []int64 {
	var total int64
	for _, u := range units {
		total += roundUp(u.Bytes, 256)
	}
	if total == 0 {
		return nil
	}
	blocks := make([]int64, min(int64(len(units)), (total+blockBytes-1)/blockBytes))
	emptiest := make([]int, len(blocks)) // a heap of the indices of blocks, by bytes
	for i := range emptiest {
		emptiest[i] = i
	}
	for _, u := range units {
		b, bytes := emptiest[0], roundUp(u.Bytes, 256)
		if blocks[b] > 0 && blocks[b]+bytes > maxBlock {
			blocks, b = append(blocks, 0), len(blocks)
			emptiest = append([]int{b}, emptiest...) // the new block is the emptiest, so the list is still a heap
		}
		u.Block, u.Off = b, blocks[b]
		blocks[b] += bytes
		sink(emptiest, func(a, b int) bool { return blocks[a] < blocks[b] || blocks[a] == blocks[b] && a < b })
	}
	return rounded(blocks)
}

// sink restores the order of a binary heap whose first element has become larger.
func sink(heap []int, less func(a, b int) bool) {
	for i := 0; ; {
		least := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < len(heap) && less(heap[child], heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// selectUnits lists pointers to the units for whose index accept returns true.
func selectUnits(units []Unit, accept func(i int) bool) []*Unit {
	var list []*Unit
	for i := range units {
		if accept(i) {
			list = append(list, &units[i])
		}
	}
	return list
}

// ringBlocks returns the sizes of the allocations that make up a ring of about bytes. Each can hold the largest unit, of largest bytes.
func ringBlocks(bytes, largest int64) []int64 {
	n := max(1, (bytes+maxBlock-1)/maxBlock)
	each := roundUp(max(bytes/n, largest), granule)
	blocks := make([]int64, n)
	for i := range blocks {
		blocks[i] = each
	}
	return blocks
}

// RingSize is the VRAM of the ring that streamed units pass through.
func (p *Plan) RingSize() int64 {
	return sum(p.Ring)
}
