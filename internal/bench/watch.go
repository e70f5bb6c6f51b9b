package bench

import (
	"sync"
	"time"

	"leat/internal/pace"
)

// watchEvery is how often what has no counter is looked at.
const watchEvery = 200 * time.Millisecond

// watcher looks at heat, power and memory beside the work.
type watcher struct {
	sensor pace.Sensor // nil: none
	stop   chan struct{}
	wait   sync.WaitGroup

	looking sync.Mutex // one asks the sensor at a time

	mu     sync.Mutex
	rss    int64 // the most
	heat   heat  // since it was last taken
	broken bool  // the sensor failed
}

// heat is what a sensor said.
type heat struct {
	tempC  float64 // the highest
	powerW float64 // sum of n
	n      int
}

func watch(sensor pace.Sensor) *watcher {
	w := &watcher{sensor: sensor, stop: make(chan struct{})}
	w.look()
	w.wait.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				w.look()
			}
		}
	})
	return w
}

func (w *watcher) look() {
	w.looking.Lock()
	defer w.looking.Unlock()
	rss := residentBytes()
	var r pace.Reading
	var err error
	w.mu.Lock()
	read := w.sensor != nil && !w.broken
	w.mu.Unlock()
	if read {
		r, err = w.sensor.Read()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rss = max(w.rss, rss)
	switch {
	case err != nil:
		w.broken = true
	case read:
		w.heat.tempC = max(w.heat.tempC, r.TempC)
		if r.PowerW > 0 {
			w.heat.powerW, w.heat.n = w.heat.powerW+r.PowerW, w.heat.n+1
		}
	}
}

// take returns what was seen since it was last called, and sees now: a row may be over sooner
// than the next look.
func (w *watcher) take() heat {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.heat
	w.heat = heat{}
	return h
}

func (w *watcher) peakRSS() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rss
}

func (w *watcher) close() {
	close(w.stop)
	w.wait.Wait()
}

// fill writes the heat of a row whose repetitions took so long for so many tokens.
func (h heat) fill(r *Row, seconds float64, tokens int) {
	r.TempC = h.tempC
	if h.n > 0 && tokens > 0 {
		r.PowerW = h.powerW / float64(h.n)
		r.JoulePer = r.PowerW * seconds / float64(tokens)
	}
}
