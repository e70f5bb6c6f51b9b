package kv

import (
	"slices"
	"testing"

	"leat/internal/plan"
	"leat/vk/mem"
	"leat/vk/vktest"
)

func TestSequences(t *testing.T) {
	heap := mem.NewHeap(vktest.Open(t), "VRAM", 0)
	p := plan.KV{PageBytes: 8192, Pages: 7, Blocks: []int{4, 3}}
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

// A sequence has two states: a step reads one and writes the other, and only positions that were appended move it on.
func TestStates(t *testing.T) {
	heap := mem.NewHeap(vktest.Open(t), "VRAM", 0)
	p := plan.KV{PageBytes: 4096, Pages: 8, Blocks: []int{8}, StateBytes: 65536, States: 4}
	c, err := New(heap, p)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if heap.Used() != p.Bytes() {
		t.Errorf("the pool takes %d bytes, planned %d", heap.Used(), p.Bytes())
	}
	s, err := c.NewSequence(100)
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.NewSequence(32)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.NewSequence(32); err == nil || c.Free() != 3 {
		t.Errorf("a third sequence with states for two: error %v, %d pages free", err, c.Free())
	}
	a, b := s.States()
	x, y := other.States()
	if all := []uint64{a, b, x, y}; len(slices.Compact(slices.Sorted(slices.Values(all)))) != 4 || slices.Contains(all, 0) {
		t.Fatalf("states %#x", all)
	}
	for _, step := range []struct {
		what          string
		do            func() error
		len           int
		state, beside uint64
	}{
		{"nothing is appended", func() error { return s.Append(0) }, 0, a, b},
		{"a step", func() error { return s.Append(10) }, 10, b, a},
		{"another", func() error { return s.Append(5) }, 15, a, b},
		{"nothing is forgotten", func() error { return s.Truncate(15) }, 15, a, b},
		{"the last step is", func() error { return s.Truncate(10) }, 10, b, a},
		{"what is before it can't be", func() error { return s.Truncate(9) }, 0, b, a},
		{"a step from the beginning", func() error { return s.Append(3) }, 3, a, b},
		{"all of it", func() error { return s.Truncate(0) }, 0, b, a},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if from, to := s.States(); s.Len() != step.len || from != step.state || to != step.beside {
			t.Errorf("%s: %d positions, states %#x and %#x; wanted %d, %#x and %#x", step.what, s.Len(), from, to, step.len, step.state, step.beside)
		}
	}
	other.Release()
	other.Release()
	if again, err := c.NewSequence(32); err != nil {
		t.Errorf("after a release: %v", err)
	} else if from, to := again.States(); from == to || from == 0 || to == 0 {
		t.Errorf("after a release: states %#x and %#x", from, to)
	}
}

// Without a cache in any layer, sequences have no pages, but hold as many positions as they were made for.
func TestNoPages(t *testing.T) {
	c, err := New(mem.NewHeap(vktest.Open(t), "VRAM", 0), plan.KV{StateBytes: 65536, States: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.NewSequence(plan.PagePositions + 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Pages()) != 0 || s.Cap() != 2*plan.PagePositions {
		t.Errorf("found %d pages for %d positions, wanted none for %d", len(s.Pages()), s.Cap(), 2*plan.PagePositions)
	}
	if err := s.Append(s.Cap()); err != nil {
		t.Error(err)
	}
	if err := s.Append(1); err == nil {
		t.Error("a position too many was appended")
	}
}
