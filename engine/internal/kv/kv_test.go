package kv

import (
	"slices"
	"testing"

	"leat/engine/plan"
	"leat/vk/mem"
	"leat/vk/vktest"
)

func TestSequences(t *testing.T) {
	heap := mem.NewHeap(vktest.Open(t), "VRAM", 0)
	p := plan.KV{LayerBytes: 4096, PageBytes: 8192, Pages: 7, Blocks: []int{4, 3}}
	c, err := New(heap, p)
	if err != nil {
		t.Fatal(err)
	}
	if heap.Used() != p.Bytes() {
		t.Errorf("the pool takes %d bytes, planned %d", heap.Used(), p.Bytes())
	}
	a, err := c.NewSequence(3*plan.PagePositions + 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.NewSequence(2 * plan.PagePositions)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Pages()) != 4 || len(b.Pages()) != 2 || c.Free() != 1 {
		t.Fatalf("%d and %d pages, %d free", len(a.Pages()), len(b.Pages()), c.Free())
	}
	all := slices.Sorted(slices.Values(slices.Concat(a.Pages(), b.Pages())))
	for i := 1; i < len(all); i++ {
		if all[i]-all[i-1] < uint64(p.PageBytes) {
			t.Errorf("pages %#x and %#x overlap", all[i-1], all[i])
		}
	}
	if _, err := c.NewSequence(plan.PagePositions + 1); err == nil || c.Free() != 1 {
		t.Errorf("two pages of one: error %v, %d free afterwards", err, c.Free())
	}
	if err := b.Append(2 * plan.PagePositions); err != nil {
		t.Error(err)
	}
	if err := b.Append(1); err == nil || b.Len() != b.Cap() {
		t.Errorf("appended past the end: error %v, %d of %d", err, b.Len(), b.Cap())
	}
	if err := b.Truncate(b.Len() + 1); err == nil {
		t.Error("truncated to more than there is")
	}
	if err := b.Truncate(5); err != nil || b.Len() != 5 {
		t.Errorf("truncated to 5: %d, error %v", b.Len(), err)
	}
	a.Release()
	a.Release()
	if c.Free() != 5 {
		t.Errorf("%d pages free after a double release, wanted 5", c.Free())
	}
	c.Close()
	if heap.Used() != 0 {
		t.Errorf("%d bytes left after Close", heap.Used())
	}
}
