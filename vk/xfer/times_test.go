package xfer

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"leat/vk"
	"leat/vk/mem"
	"leat/vk/vktest"
)

// length is how many of the moments 0 to end lie in an interval.
func length(list []interval, end time.Duration) (sum time.Duration) {
	for at := range end {
		if slices.ContainsFunc(list, func(v interval) bool { return v.begin <= at && at < v.end }) {
			sum++
		}
	}
	return sum
}

func TestUnion(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		var u union
		var list []interval
		at, end := time.Duration(0), time.Duration(0)
		for range 3 * mostOpen {
			at += time.Duration(r.IntN(12)) - 3 // now and then one comes late
			v := interval{max(0, at), max(0, at) + time.Duration(r.IntN(6))}
			end = max(end, v.end)
			list = append(list, v)
			u.add(v.begin, v.end)
		}
		want := length(list, end)
		if got := u.total(); got != want || len(u.open) >= mostOpen {
			t.Errorf("seed %d: %v with %d open, want %v", seed, got, len(u.open), want)
		}
		u.restart()
		u.add(0, 7)
		if got := u.total(); got != want+7 {
			t.Errorf("seed %d: after a new beginning %v, want %v", seed, got, want+7)
		}
	}
}

const neverAsked = "the device's, never asked"

// clocks are the ways in which submissions are timed.
var clocks = []struct {
	name string
	lose func(*vk.Device)
}{
	{"the device's", func(*vk.Device) {}},
	{"the device's, reset by command", func(d *vk.Device) { d.Features.HostQueryReset = false }},
	{neverAsked, func(d *vk.Device) { d.Features.CalibratedTimestamps = false }},
	{"the host's", func(d *vk.Device) { d.Compute.TimestampBits, d.Transfers[0].TimestampBits = 0, 0 }},
}

// Every submission is told of once, with its bytes and when it ran; those of one lane do
// not overlap, and together they make up Busy.
func TestDone(t *testing.T) {
	for _, lanes := range []int{1, 2} {
		for _, c := range clocks {
			t.Run(c.name, func(t *testing.T) { testDone(t, lanes, c.lose, c.name == neverAsked) })
		}
	}
}

func testDone(t *testing.T, lanes int, lose func(*vk.Device), blind bool) {
	const n, rounds = 1 << 20, 100
	dev := vktest.Open(t, vktest.OneQueue())
	lose(dev)
	host := mem.NewHeap(dev, "host memory", 0)
	defer host.Close()
	type span struct {
		Done
		Begin, End time.Time
	}
	var got []span
	u, err := New(dev, host, Options{Slots: 1, SlotBytes: 4096, Queues: []*vk.Queue{dev.Compute, dev.Compute}[:lanes], Clocked: true, Done: func(d *Done) {
		begin, end := d.Times()
		got = append(got, span{*d, begin, end})
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	u.split, u.most = n/2, n/4
	src, err := host.AllocHost("host tier", n)
	if err != nil {
		t.Fatal(err)
	}
	dst, err := host.Alloc("destination", n, vk.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	begun, sent := time.Now(), map[uint64]int64{}
	for tag := range uint64(rounds) {
		sent[tag] = int64(1 + tag*n/rounds)
		if _, err := u.Submit([]Copy{{Dst: mem.Whole(dst), Src: src, Bytes: sent[tag], Tag: tag}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Wait(context.Background(), u.Last()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds nothing new
		if err := u.Collect(); err != nil {
			t.Fatal(err)
		}
	}
	seen := time.Now()
	reading := 50*time.Microsecond + dev.Clock.Width()
	last := make([]time.Time, lanes)
	var list []interval
	for i, d := range got {
		sent[d.Tag] -= d.Bytes
		if d.Begin.Before(begun.Add(-reading)) || d.End.After(seen.Add(reading)) || d.End.Before(d.Begin) || d.Begin.Before(last[d.Lane]) {
			t.Errorf("submission %d, lane %d: %v to %v, the one before ended %v, all %v", i, d.Lane, d.Begin.Sub(begun), d.End.Sub(begun), last[d.Lane].Sub(begun), seen.Sub(begun))
		}
		last[d.Lane] = d.End
		list = append(list, interval{d.Begin.Sub(begun), d.End.Sub(begun)})
	}
	for tag, left := range sent {
		if left != 0 {
			t.Errorf("tag %d: %d bytes were not told of", tag, left)
		}
	}
	var want union
	slices.SortFunc(list, func(a, b interval) int { return int(a.begin - b.begin) })
	for _, v := range list {
		want.add(v.begin, v.end)
	}
	// A clock that is never asked is known better and better: the spans were moved meanwhile.
	if d := u.Busy() - want.total(); u.Busy() <= 0 || d.Abs() > time.Duration(2*len(got)) && !blind {
		t.Errorf("busy for %v, want %v", u.Busy(), want.total())
	}
}
