package weights

import (
	"context"
	"fmt"
	"slices"

	"leat/internal/plan"
	"leat/vk"
	"leat/vk/mem"
)

// vram is the device memory of the plan's units: blocks of resident ones, and the ring that streamed ones pass through. It allocates slots of experts, too,
// which [Experts] keeps and frees.
type vram struct {
	heap    *mem.Heap    // allocates the blocks
	inPlace bool         // device and host share this memory: the disk is read into it, and nothing is uploaded
	shared  mem.Shared   // the kind of memory to allocate if inPlace
	blocks  []*vk.Buffer // blocks for resident units; nil: the plan has given the block back
	rings   []*vk.Buffer // blocks of the ring
	ring    ring         // where each streamed unit is in rings
}

// alloc makes buffers of the given sizes, in bytes; that of size 0 is nil. After a failure the caller must free the buffers in list.
func (v *vram) alloc(ctx context.Context, what string, sizes []int64) (list []*vk.Buffer, err error) {
	for i, n := range sizes {
		if err := ctx.Err(); err != nil {
			return list, err
		}
		name := fmt.Sprintf("%s block %d", what, i)
		var b *vk.Buffer
		switch {
		case n == 0:
		case v.inPlace:
			b, err = v.heap.AllocShared(name, n, v.shared)
		default:
			b, err = v.heap.Alloc(name, n, vk.DeviceLocal)
		}
		if err != nil {
			return list, err
		}
		list = append(list, b)
	}
	return list, nil
}

// free frees the buffers of a list; nil ones are left out.
func (v *vram) free(list []*vk.Buffer) {
	for _, b := range list {
		if b != nil {
			v.heap.Free(b)
		}
	}
}

// open allocates the blocks of resident units and the ring.
func (v *vram) open(ctx context.Context, p *plan.Plan) (err error) {
	if v.blocks, err = v.alloc(ctx, "weights", p.Blocks); err != nil {
		return err
	}
	return v.fit(ctx, p)
}

// fit makes the memory fit a plan: it frees the blocks that the plan gave back, and makes an empty ring of the plan's size.
func (v *vram) fit(ctx context.Context, p *plan.Plan) error {
	for b, bytes := range p.Blocks {
		if bytes == 0 && v.blocks[b] != nil {
			v.heap.Free(v.blocks[b])
			v.blocks[b] = nil
		}
	}
	if !slices.Equal(v.ring.blocks, p.Ring) || len(v.rings) != len(p.Ring) {
		v.free(v.rings)
		var err error
		if v.rings, err = v.alloc(ctx, "ring", p.Ring); err != nil {
			v.free(v.rings)
			v.rings = nil
			return fmt.Errorf("make a ring: %w", err)
		}
	}
	v.ring = ring{blocks: p.Ring}
	return nil
}

// resident is the place of a resident unit in its block.
func (v *vram) resident(u *plan.Unit) Place {
	return Place{span: mem.Span{Buffer: v.blocks[u.Block], Off: u.Off, Bytes: u.Bytes}}
}

// room takes a place in the ring for the next unit. It reports false while units that are not released are in the way.
func (v *vram) room(bytes int64) (Place, bool) {
	to, after, ok := v.ring.place(bytes)
	return Place{Streamed: true, After: after, span: mem.Span{Buffer: v.rings[to.block], Off: to.off, Bytes: bytes}}, ok
}

// close frees the blocks of resident units and the ring. The slots of experts are freed by [Experts.close].
func (v *vram) close() {
	v.free(v.blocks)
	v.free(v.rings)
	v.blocks, v.rings = nil, nil
}
