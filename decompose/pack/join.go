package pack

import (
	"cmp"
	"slices"
)

// Join puts experts of one layer together into one unit, each slice marked with its Expert. Slices that lie near one another in
// the file, on multiples of 16, lie as far apart in memory, so that they are one read: records in a pack, parts of a stack in a
// GGUF.
func Join(name string, experts []Unit) Unit {
	u := Unit{Kind: Experts, Layer: experts[0].Layer, Expert: experts[0].Expert, Name: name}
	for i := range experts {
		for _, t := range experts[i].Tensors {
			t.Expert = experts[i].Expert
			u.Tensors = append(u.Tensors, t)
		}
	}
	slices.SortStableFunc(u.Tensors, func(a, b Tensor) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Off, b.Off)) })
	end := int64(0)
	for i := range u.Tensors {
		t := &u.Tensors[i]
		t.UnitOff = alignUp(end, TensorAlign)
		if i > 0 {
			last := &u.Tensors[i-1]
			at := last.UnitOff + t.Off - last.Off
			if t.File == last.File && at >= end && at-end <= FileAlign && at%sliceAlign == 0 {
				t.UnitOff = at
			}
		}
		end = t.UnitOff + t.Bytes
	}
	u.Bytes = alignUp(end, TensorAlign)
	u.Extents = extents(u.Tensors)
	return u
}

// sliceAlign is what kernels want of an expert's slice in memory.
const sliceAlign = 16
