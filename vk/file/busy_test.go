package file

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// Every read that succeeds is told of once; a reader's do not overlap, and together they
// make up Busy.
func TestDone(t *testing.T) {
	const n, size = 200, 1 << 16
	path, _ := write(t, size, 11)
	f := open(t, path)
	bad := errors.New("no")
	p := NewPool(3, func(_ string, off, _ int64) error {
		if off == 7 {
			return bad
		}
		return nil
	})
	defer p.Close()
	var mu sync.Mutex
	var got []Done
	p.Watch(func(d Done) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, d)
	})
	if b := p.Busy(); b != 0 {
		t.Errorf("busy for %v before the first read", b)
	}
	begun := time.Now()
	var list []*Request
	for i := range int64(n) {
		r := NewRequest()
		r.File, r.Off, r.N, r.Dst, r.Tag = f, i, size-i, Buffer(size), uint64(i)
		if err := p.Start(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	for _, r := range list {
		if err := r.Wait(t.Context()); (err != nil) != (r.Off == 7) {
			t.Fatal(err)
		}
	}
	took, busy := time.Since(begun), p.Busy()
	seen := map[uint64]bool{}
	last := map[int]time.Time{}
	var longest time.Duration
	for _, d := range got {
		if seen[d.Tag] || d.Bytes != size-int64(d.Tag) || d.Tag == 7 || d.End.Before(d.Begin) || d.Begin.Before(last[d.Reader]) || d.Begin.Before(begun) {
			t.Errorf("%+v, and the reader's last ended at %v", d, last[d.Reader])
		}
		seen[d.Tag], last[d.Reader] = true, d.End
		longest = max(longest, d.End.Sub(d.Begin))
	}
	if len(seen) != n-1 || busy < longest || busy > took {
		t.Errorf("%d reads told of; busy for %v of %v, the longest read took %v", len(seen), busy, took, longest)
	}
	if again := p.Busy(); again != busy {
		t.Errorf("idle, busy grew from %v to %v", busy, again)
	}
}

// Busy counts a read that is still under way.
func TestBusyNow(t *testing.T) {
	path, _ := write(t, 4096, 12)
	f := open(t, path)
	begun, gate := make(chan struct{}), make(chan struct{})
	p := NewPool(1, func(string, int64, int64) error { close(begun); <-gate; return nil })
	defer p.Close()
	r := NewRequest()
	r.File, r.N, r.Dst = f, 10, Buffer(4096)
	if err := p.Start(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	<-begun
	a := p.Busy()
	for p.Busy() == a { // the clock moves
	}
	close(gate)
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}
