package trace

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Recorder keeps spans, at most as many as it was made for. Its methods are safe for
// use by several goroutines; those of a nil Recorder do nothing.
type Recorder struct {
	started atomic.Bool // once at least

	mu         sync.Mutex
	epoch      time.Time     // of the first Start
	running    bool          //
	begin, end time.Duration // of the last run, since epoch; end where it is over
	spans      []Span        // never grows beyond its capacity
	dropped    int
}

// New makes a recorder for at most maxSpans spans; it takes the memory at once.
func New(maxSpans int) *Recorder { return &Recorder{spans: make([]Span, 0, max(0, maxSpans))} }

// Start begins to keep spans. The clock of the spans begins with the first Start.
func (r *Recorder) Start() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.started.Load() {
		r.epoch = now
	}
	r.running, r.begin = true, now.Sub(r.epoch)
	r.started.Store(true)
}

// Stop ends it. Spans that ended before are still kept when they are told of late, as
// happens with work of a device.
func (r *Recorder) Stop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		r.running, r.end = false, time.Since(r.epoch)
	}
}

// Add keeps s, with begin and end in place of its own, if it ended while the recorder
// ran.
func (r *Recorder) Add(s Span, begin, end time.Time) {
	if r == nil || !r.started.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Begin, s.End = begin.Sub(r.epoch), end.Sub(r.epoch)
	switch {
	case s.End < r.begin || !r.running && s.End > r.end:
	case len(r.spans) == cap(r.spans):
		r.dropped++
	default:
		r.spans = append(r.spans, s)
	}
}

// Spans is a copy of what was kept, sorted by Begin.
func (r *Recorder) Spans() []Span {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	list := slices.Clone(r.spans)
	r.mu.Unlock()
	sortByBegin(list)
	return list
}

// Dropped is how many spans found no room.
func (r *Recorder) Dropped() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}
