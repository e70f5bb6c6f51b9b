package plan

import (
	"fmt"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/internal/arch"
)

// maxPart is the most bytes of a part of a layer that can be cut further, see parts: a fast link uploads it in 4 ms.
// Smaller parts make the ring smaller and the choice of residents finer. Each part costs
// two submissions when it is streamed.
const maxPart = 192 << 20

// movable lists the units that may be resident or streamed: the layers' parts, their experts if withExperts is set, and the head, cut by rows so
// that no piece is larger than the largest part. A part has more than partBytes only if it can't be cut; 0: maxPart.
func movable(h *arch.Hyper, m *pack.Model, partBytes int64, withExperts bool) ([]Unit, error) {
	if partBytes == 0 {
		partBytes = maxPart
	}
	var us []Unit
	var largest int64
	for l := range h.BlockCount {
		u, ok := m.Unit(pack.Layer, l)
		if !ok {
			return nil, fmt.Errorf("plan %s: layer %d is missing", m.Path, l)
		}
		before, after := parts(u, h.Layer(l, m.Has), partBytes)
		us = append(us, before...)
		if withExperts {
			us = append(us, expertParts(m, l, partBytes)...)
		}
		us = append(us, after...)
	}
	for i := range us {
		largest = max(largest, us[i].Bytes)
	}
	head, err := headPieces(h, m, largest)
	return append(us, head...), err
}

// outerUnits lists the units outside the layers and the head whose tensors operations read: first the other weights outside the layers, then the final norm.
func outerUnits(h *arch.Hyper, m *pack.Model) (us []Unit) {
	names := h.Outer(m.Has)
	for _, kind := range []pack.Kind{pack.Global, pack.Norm} {
		u, ok := m.Unit(kind, -1)
		if !ok {
			continue
		}
		from, to := len(u.Tensors), 0
		for i := range u.Tensors {
			if slices.Contains(names, u.Tensors[i].Name) {
				from, to = min(from, i), i+1
			}
		}
		switch {
		case from >= to:
		case to-from == len(u.Tensors):
			us = append(us, Unit{Unit: *u})
		default:
			us = append(us, Unit{Unit: u.Part(u.Name, from, to)})
		}
	}
	return us
}

// headGroup is the number of rows that the pieces of the head are multiples of, except for the last. So the logits and the weights of each piece
// begin at a multiple of 16 bytes, as kernels need.
func headGroup(rowBytes int64) int64 {
	group := int64(4)
	for group*rowBytes%kernelAlign != 0 {
		group *= 2
	}
	return group
}

// kernelAlign divides the address of every tensor: kernels read 16 bytes at a time.
const kernelAlign = 16

// headPieces cuts the output matrix by rows into pieces of even size, at most about largest bytes. An encoder has none.
func headPieces(h *arch.Hyper, m *pack.Model, largest int64) ([]Unit, error) {
	kind := pack.Head
	switch {
	case h.Encoder:
		return nil, nil
	case h.Tied:
		kind = pack.Embed
	}
	head, ok := m.Unit(kind, -1)
	if !ok {
		return nil, fmt.Errorf("plan %s: the output matrix %q is missing", m.Path, h.Head())
	}
	t, ok := head.Tensor(h.Head())
	if !ok {
		return nil, fmt.Errorf("plan %s: tensor %q is missing", m.Path, h.Head())
	}
	rows, rowBytes := int64(h.VocabSize), t.Bytes/int64(h.VocabSize)
	group := headGroup(rowBytes)
	step := max(group, min(largest, maxBlock)/rowBytes-group)
	pieces := (rows + step - 1) / step
	us := make([]Unit, 0, pieces)
	for i := range pieces { // even pieces: the last is not a sliver
		r0, r1 := rows*i/pieces/group*group, rows*(i+1)/pieces/group*group
		if i == pieces-1 {
			r1 = rows
		}
		u := Unit{Unit: head.Rows(r0, r1-r0), Row: r0}
		u.Kind, u.Name = pack.Head, fmt.Sprintf("lm_head rows %d to %d", r0, r1-1)
		us = append(us, u)
	}
	return us, nil
}

// parts cuts a layer's unit before the FFN, before the FFN's last matrix, and where a part would have more than most bytes, if the operations
// allow it: it cuts before tensor i only if all uses of the tensors before i come before all uses of the others. It does not cut between the weights
// of operations that run as one, see [arch.Fuse]: which kernels run must not depend on the budget. Weights that are used after the layer's experts are always
// in parts of their own, which come after the experts.
func parts(u *pack.Unit, ops []arch.Op, most int64) (before, after []Unit) {
	firstUse, lastUse := map[string]int{}, map[string]int{}
	ops = arch.Fuse(ops)
	experts := slices.IndexFunc(ops, func(o arch.Op) bool { return o.Kind == arch.Experts }) // they are separate units; -1: there are none
	for i := range ops {
		for _, name := range ops[i].Weights() {
			if _, seen := firstUse[name]; !seen {
				firstUse[name] = i
			}
			lastUse[name] = i
		}
	}
	n := len(u.Tensors)
	earliest := make([]int, n+1) // first use of any tensor from i on
	earliest[n] = len(ops)
	for i := n - 1; i >= 0; i-- {
		earliest[i] = earliest[i+1]
		if use, used := firstUse[u.Tensors[i].Name]; used {
			earliest[i] = min(earliest[i], use)
		}
	}
	from, latest, bytes := 0, -1, int64(0)
	cut := func(to int) {
		p := Unit{Unit: u.Part(partName(u, len(before)+len(after), from, to), from, to)}
		if p.AfterExperts = experts >= 0 && earliest[from] > experts && earliest[from] < len(ops); p.AfterExperts {
			after = append(after, p)
		} else {
			before = append(before, p)
		}
		from, bytes = to, 0
	}
	for i, t := range u.Tensors {
		ends := experts >= 0 && latest < experts && earliest[i] > experts && earliest[i] < len(ops)
		wanted := ends || strings.Contains(t.Name, ".ffn_norm.") && experts < 0 || strings.Contains(t.Name, ".ffn_down.") || bytes+t.Bytes > most
		if i > from && wanted && latest < earliest[i] {
			cut(i)
		}
		bytes += t.Bytes
		if use, used := lastUse[t.Name]; used {
			latest = max(latest, use)
		}
	}
	cut(n)
	return before, after
}

// partName names part number index of a layer's unit, which has the tensors from index from up to, not including, index to.
func partName(u *pack.Unit, index, from, to int) string {
	if from == 0 && to == len(u.Tensors) {
		return u.Name
	}
	return fmt.Sprintf("%s part %d", u.Name, index+1)
}

// ReadAlign is the granule of direct reads: they read whole blocks of this size. In host memory, the offset of an extent from the last
// multiple of ReadAlign is the same as on disk.
const ReadAlign = 4096

// HostExtents calls do, if it is not nil, for each extent of u with the extent's offset in u's host memory, and
// returns the size of that memory.
func HostExtents(u *pack.Unit, do func(e pack.Extent, at int64)) (bytes int64) {
	for _, e := range u.Extents {
		if do != nil {
			do(e, bytes+e.Off%ReadAlign)
		}
		bytes += roundUp(e.Off%ReadAlign+e.Bytes, ReadAlign)
	}
	return bytes
}

// asOnDisk gives units the layout that they have on disk, so that a disk read can go directly to memory that kernels read. It reports whether each tensor's
// offset is then a multiple of kernelAlign. If not, the units can't be used.
func asOnDisk(lists ...[]Unit) bool {
	ok := true
	for _, us := range lists {
		for i := range us {
			ok = ok && layAsOnDisk(&us[i].Unit)
		}
	}
	return ok
}

// layAsOnDisk gives one unit the layout that it has on disk, see [asOnDisk].
func layAsOnDisk(u *pack.Unit) bool {
	extents, tensors := slices.Clone(u.Extents), slices.Clone(u.Tensors)
	aligned, k := true, 0
	bytes := HostExtents(u, func(e pack.Extent, at int64) {
		for i := range tensors {
			if t := &u.Tensors[i]; t.UnitOff >= e.UnitOff && t.UnitOff+t.Bytes <= e.UnitOff+e.Bytes {
				tensors[i].UnitOff = t.UnitOff - e.UnitOff + at
				aligned = aligned && tensors[i].UnitOff%kernelAlign == 0
			}
		}
		extents[k].UnitOff = at
		k++
	})
	u.Extents, u.Tensors, u.Bytes = extents, tensors, bytes
	return aligned
}
