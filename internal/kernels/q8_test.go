package kernels

import "testing"

// TestQ8Slots: an op that reads some rows of what is in bytes never gets their place for its output, and what is
// there is found by the rows that it has.
func TestQ8Slots(t *testing.T) {
	const x, y, rows, cols = 1 << 20, 1 << 21, 16, 64
	r := &Recorder{k: &Kernels{few: true}, Q8: Scratch{Address: 1 << 30, Bytes: 1 << 16}}
	slot := r.q8Slot(x, rows, cols, cols, 0)
	slot.there = true
	for _, first := range []uint32{0, 1, 8, 15} {
		n := rows - first
		q, sums, err := r.bytesOf(x+uint64(first)*cols*4, n, cols, cols)
		if err != nil || q != slot.q+uint64(first)*cols || sums != slot.sums+uint64(first)*cols/4 {
			t.Fatalf("rows from %d on: bytes at %#x, sums at %#x, %v", first, q, sums, err)
		}
		if to := r.q8Slot(y, n, cols, cols, q); to == nil || to == slot {
			t.Errorf("rows from %d on are read, and overwritten", first)
		}
	}
	slot = r.q8Slot(x, rows, cols, cols, 0)
	slot.there = true
	for name, b := range map[string]bool{
		"more rows":       slot.holds(x, rows+1, cols, cols),
		"half a row":      slot.holds(x+cols*2, 1, cols, cols),
		"rows before":     slot.holds(x-cols*4, 1, cols, cols),
		"rows behind":     slot.holds(x+rows*cols*4, 1, cols, cols),
		"narrower rows":   slot.holds(x, rows, cols/2, cols),
		"another stride":  slot.holds(x, rows, cols, cols+4),
		"other rows here": slot.holds(y, rows, cols, cols),
	} {
		if b {
			t.Error(name)
		}
	}
}

// TestBrought: a recorder that goes on behind what another left finds those bytes that are there on each way to it, in a place
// that it does not give away, and no others.
func TestBrought(t *testing.T) {
	const x, y, z, rows, cols = 1 << 20, 1 << 21, 1 << 22, 1, 64
	r := &Recorder{k: &Kernels{few: true}, Q8: Scratch{Address: 1 << 30, Bytes: 1 << 16}}
	bring := func(v uint64) { r.q8Slot(v, rows, cols, cols, 0).there = true }
	bring(x)
	before := r.Brought()
	bring(y)
	after := r.Brought()
	if after == before || before.Both(before) != before || before.Both(after) != before || after.Both(before).q8 != before.q8 {
		t.Errorf("%+v is there, then %+v, yet both have %+v", before, after, before.Both(after))
	}
	r.brought.q8[1-r.brought.last].there = false // written to, in between
	if got := before.Both(r.Brought()); got.q8 != [2]q8{} {
		t.Errorf("x is written to behind %+v, yet there is %+v", before, got)
	}
	bring(z) // where x was
	if got := after.Both(r.Brought()); got.q8[0].there && got.q8[1].there || got.q8 == [2]q8{} {
		t.Errorf("y alone is there on both ways, found %+v", got)
	}
	next := &Recorder{k: r.k, Q8: r.Q8}
	next.brought.q8, next.brought.last = before.q8, before.last
	if q, _, err := next.bytesOf(x, rows, cols, cols); err != nil || q != before.q8[before.last].q {
		t.Errorf("x is at %#x, %v, wanted %#x", q, err, before.q8[before.last].q)
	}
}
