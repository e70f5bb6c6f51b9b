package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestBusy(t *testing.T) {
	spans := []Span{
		{Lane: Link, Begin: 10, End: 20}, {Lane: Link, Track: 1, Begin: 15, End: 30}, {Lane: Link, Begin: 40, End: 50},
		{Lane: Link, Track: 1, Begin: 42, End: 45}, {Lane: Link, Begin: 50, End: 50}, {Lane: Compute, Begin: 0, End: 100},
	}
	slices.Reverse(spans)
	for _, c := range []struct {
		from, to, want time.Duration
	}{{0, 100, 30}, {10, 50, 30}, {12, 18, 6}, {25, 44, 9}, {30, 40, 0}, {60, 70, 0}, {20, 10, 0}, {-5, 15, 5}} {
		if got := Busy(spans, Link, c.from, c.to); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	if got := Busy(spans, Disk, 0, 100); got != 0 {
		t.Errorf("a lane without spans: %v", got)
	}
	if spans[0].Lane != Compute {
		t.Error("Busy changed its input")
	}
	r := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		spans = spans[:0]
		for range r.IntN(20) {
			begin := time.Duration(r.IntN(60)) - 10
			spans = append(spans, Span{Lane: Disk, Begin: begin, End: begin + time.Duration(r.IntN(15))})
		}
		want := time.Duration(0)
		for at := range time.Duration(50) {
			if slices.ContainsFunc(spans, func(s Span) bool { return s.Begin <= at && at < s.End }) {
				want++
			}
		}
		if got := Busy(spans, Disk, 0, 50); got != want {
			t.Fatalf("%v: %v, want %v", spans, got, want)
		}
	}
}

// A recorder keeps what ended between Start and Stop, whenever it is told.
func TestRecorder(t *testing.T) {
	r := New(4)
	now := time.Now()
	add := func(name string, begin, end time.Duration) {
		r.Add(Span{Lane: Disk, Name: name}, now.Add(begin), now.Add(end))
	}
	add("before any start", 0, 0)
	r.Start()
	now = r.epoch
	r.Stop()
	r.end = time.Second // as if it had run so long
	add("before", -2*time.Second, -time.Second)
	add("into it", -time.Second, time.Millisecond)
	add("told late", 2, 3)
	add("after", time.Millisecond, 2*time.Second)
	r.Start()
	begin := r.begin
	add("before the second start", begin-2, begin-1)
	add("running", begin+3, begin+4)
	add("running, earlier", begin+1, begin+2)
	if r.Dropped() != 0 {
		t.Errorf("%d dropped", r.Dropped())
	}
	add("one too many", begin+5, begin+6)
	var got []string
	for _, s := range r.Spans() {
		got = append(got, s.Name)
	}
	if want := "into it, told late, running, earlier, running"; strings.Join(got, ", ") != want || r.Dropped() != 1 {
		t.Errorf("kept %q, dropped %d; want %s", got, r.Dropped(), want)
	}
	if s := r.Spans()[0]; s.Begin != -time.Second || s.End != time.Millisecond {
		t.Errorf("%+v", s)
	}
}

func TestNoRecorder(t *testing.T) {
	var r *Recorder
	r.Start()
	r.Add(Span{}, time.Time{}, time.Now())
	r.Stop()
	if r.Spans() != nil || r.Dropped() != 0 {
		t.Error("nobody kept something")
	}
}

func TestNoAllocation(t *testing.T) {
	running, stopped, full := New(1000), New(1000), New(1)
	running.Start()
	full.Start()
	stopped.Start()
	stopped.Stop()
	now := time.Now()
	for name, r := range map[string]*Recorder{"none": nil, "running": running, "stopped": stopped, "full": full, "never started": New(5)} {
		if n := testing.AllocsPerRun(100, func() { r.Add(Span{Lane: Link, Name: "blk.0"}, now, now.Add(time.Hour)) }); n > 0 {
			t.Errorf("%s: %v allocations a span", name, n)
		}
	}
	if len(running.Spans()) != 101 || len(stopped.Spans()) > 0 || full.Dropped() != 100 {
		t.Errorf("kept %d and %d, dropped %d", len(running.Spans()), len(stopped.Spans()), full.Dropped())
	}
}

func TestConcurrent(t *testing.T) {
	r := New(500)
	r.Start()
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			for range 100 {
				at := time.Now()
				r.Add(Span{Lane: Disk, Track: n}, at, at)
				_ = r.Dropped()
			}
		})
	}
	r.Spans()
	wg.Wait()
	if len(r.Spans()) != 500 || r.Dropped() != 100 {
		t.Errorf("kept %d, dropped %d", len(r.Spans()), r.Dropped())
	}
}

func TestWritePerfetto(t *testing.T) {
	spans := []Span{
		{Lane: Compute, Name: `a "b"`, Step: 2, Begin: 1500, End: 4000, Bytes: 7},
		{Lane: Disk, Track: 1, Name: "blk.0", Begin: -1000, End: 2 * time.Second, Bytes: 1 << 40},
		{Lane: Host, Name: "blk.0", Step: 1, Begin: 1, End: 2},
		{Lane: Link, Name: "blk.0", Step: 1, Begin: 1, End: 2},
		{Lane: Disk, Name: "blk.1", Step: 1, Begin: 1, End: 2},
	}
	var b bytes.Buffer
	if err := WritePerfetto(&b, "a model & more", spans); err != nil {
		t.Fatal(err)
	}
	var file struct {
		TraceEvents []struct {
			Name, Ph, Cat string
			Pid, Tid      int
			Ts, Dur       *float64
			Args          map[string]any
		}
	}
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatalf("%v in %s", err, b.String())
	}
	threads := map[int]string{}
	var got []string
	for _, e := range file.TraceEvents {
		switch {
		case e.Ph == "M" && e.Name == "process_name":
			got = append(got, fmt.Sprint(e.Args["name"]))
		case e.Ph == "M" && e.Name == "thread_name":
			threads[e.Tid] = fmt.Sprint(e.Args["name"])
		case e.Ph == "M" && e.Args["sort_index"] != float64(e.Tid):
			t.Errorf("thread %d is sorted as %v", e.Tid, e.Args["sort_index"])
		case e.Ph == "X":
			got = append(got, fmt.Sprintf("%s %s %s %v+%v %v %v", e.Cat, threads[e.Tid], e.Name, *e.Ts, *e.Dur, e.Args["step"], e.Args["bytes"]))
		}
	}
	want := []string{
		"a model & more", `compute compute 0 a "b" 1.5+2.5 2 7`, "disk disk 1 blk.0 -1+2.000001e+06 0 1.099511627776e+12",
		"host host 0 blk.0 0.001+0.001 1 <nil>", "link link 0 blk.0 0.001+0.001 1 <nil>", "disk disk 0 blk.1 0.001+0.001 1 <nil>",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwanted\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if order := []string{threads[1], threads[2], threads[3], threads[4], threads[5]}; !slices.Equal(order, []string{"disk 0", "disk 1", "link 0", "compute 0", "host 0"}) {
		t.Errorf("threads %v", order)
	}
	b.Reset()
	if err := WritePerfetto(&b, "nothing", nil); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("no spans: %v, %s", err, b.String())
	}
	if err := WritePerfetto(full{}, "x", spans); !errors.Is(err, errFull) {
		t.Errorf("to a full disk: %v", err)
	}
}

var errFull = errors.New("no room")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
