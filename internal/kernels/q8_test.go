package kernels

import "testing"

// TestQ8Slots: an op that reads some rows of what is in bytes never gets their place for its output, and what is
// there is found by the rows that it has.
func TestQ8Slots(t *testing.T) {
	const x, y, rows, cols = 1 << 20, 1 << 21, 16, 64
	r := &Recorder{k: &Kernels{can: abilities{few: true}}, Memory: Memory{Q8: Scratch{Address: 1 << 30, Bytes: 1 << 16}}}
	slot := r.q8Slot(x, rows, cols, cols, 0)
	slot.valid = true
	for _, first := range []uint32{0, 1, 8, 15} {
		n := rows - first
		q, sums, err := r.int8X(x+uint64(first)*cols*4, n, cols, cols)
		if err != nil || q != slot.q+uint64(first)*cols || sums != slot.sums+uint64(first)*cols/4 {
			t.Fatalf("rows from %d on: bytes at %#x, sums at %#x, %v", first, q, sums, err)
		}
		if to := r.q8Slot(y, n, cols, cols, q); to == nil || to == slot {
			t.Errorf("rows from %d on are read, and overwritten", first)
		}
	}
	slot = r.q8Slot(x, rows, cols, cols, 0)
	slot.valid = true
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

// TestQuantised: a recorder that continues after others finds the int8 rows that all of them left, and writes new ones to the other half.
func TestQuantised(t *testing.T) {
	const x, y, z, rows, cols = 1 << 20, 1 << 21, 1 << 22, 1, 64
	r := &Recorder{k: &Kernels{can: abilities{few: true}}, Memory: Memory{Q8: Scratch{Address: 1 << 30, Bytes: 1 << 16}}}
	bring := func(v uint64) { r.q8Slot(v, rows, cols, cols, 0).valid = true }
	bring(x)
	before := r.Quantised()
	bring(y)
	after := r.Quantised()
	if after == before || before.Common(before) != before || before.Common(after) != before || after.Common(before).q8 != before.q8 {
		t.Errorf("%+v is there, then %+v, yet both have %+v", before, after, before.Common(after))
	}
	r.quantised.q8[1-r.quantised.last].valid = false // written to, in between
	if got := before.Common(r.Quantised()); got.q8 != [2]q8{} {
		t.Errorf("x is written to behind %+v, yet there is %+v", before, got)
	}
	bring(z) // where x was
	if got := after.Common(r.Quantised()); got.q8[0].valid && got.q8[1].valid || got.q8 == [2]q8{} {
		t.Errorf("y alone is there on both ways, found %+v", got)
	}
	next := &Recorder{k: r.k, Memory: Memory{Q8: r.Memory.Q8}}
	next.quantised.q8, next.quantised.last = before.q8, before.last
	if q, _, err := next.int8X(x, rows, cols, cols); err != nil || q != before.q8[before.last].q {
		t.Errorf("x is at %#x, %v, wanted %#x", q, err, before.q8[before.last].q)
	}
}
