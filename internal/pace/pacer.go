package pace

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a Pacer is made from.
type Options struct {
	TargetC float64      // 0: AutoTarget of the sensor's slowdown
	Sensor  Sensor       // closed by the pacer; nil: none, only drift is watched
	Layers  int          // of the model, for the report
	Logger  *slog.Logger // needed
}

// Pacer watches a device beside the steps that run on it, and inserts rests between
// submissions when it gets too hot. One goroutine runs steps; any may ask for the report.
type Pacer struct {
	o      Options
	start  time.Time
	active atomic.Bool // read on the step's path

	mu       sync.Mutex
	control  *Controller // nil without a sensor
	drift    *Drift
	governor *Governor
	ledger   ledger
	last     Reading
	failures int
	working  bool          // a step is under way
	begun    time.Duration // when it began, or the last one did
	resting  time.Duration // rested in this step
	unseen   time.Duration // rested, but not yet told as idle time
	recent   recent

	timer  *time.Timer
	wake   chan struct{}
	done   chan struct{}
	closed sync.Once
	wg     sync.WaitGroup
}

// recent are sums that forget the past within some seconds of steps.
type recent struct{ steps, seconds, rested float64 }

const (
	every       = 500 * time.Millisecond // between readings
	asleep      = 5 * time.Second        // without a step until the sensor is left in peace
	mostFailed  = 5                      // readings in a row until a sensor is given up
	recentSteps = 10.0                   // seconds
)

// New starts a pacer.
func New(o Options) *Pacer {
	p := &Pacer{
		o: o, start: time.Now(), drift: NewDrift(), governor: NewGovernor(),
		wake: make(chan struct{}, 1), done: make(chan struct{}), timer: time.NewTimer(0),
	}
	if !p.timer.Stop() {
		<-p.timer.C
	}
	if o.Sensor == nil {
		return p
	}
	target := o.TargetC
	if target == 0 {
		target = AutoTarget(o.Sensor.SlowdownC())
	}
	p.control = NewController(target)
	p.sense()
	p.wg.Add(1)
	go p.watch()
	return p
}

// Close ends the watching and closes the sensor; safe to call twice.
func (p *Pacer) Close() (err error) {
	p.closed.Do(func() {
		close(p.done)
		p.wg.Wait()
		if p.o.Sensor != nil {
			err = p.o.Sensor.Close()
		}
	})
	return err
}

func (p *Pacer) now() time.Duration { return time.Since(p.start) }

// watch reads the sensor while steps run. It leaves an idle device alone: reading it can
// keep a laptop's GPU from sleeping.
func (p *Pacer) watch() {
	defer p.wg.Done()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		if p.idleFor() < asleep {
			p.sense()
			continue
		}
		tick.Stop()
		select {
		case <-p.done:
			return
		case <-p.wake:
		}
		p.sense()
		tick.Reset(every)
	}
}

func (p *Pacer) idleFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.working {
		return 0
	}
	return p.now() - p.begun
}

// sense takes a reading.
func (p *Pacer) sense() {
	r, err := p.o.Sensor.Read() // outside the lock: it may be slow
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.failures, p.last = 0, r
		p.control.Sense(p.now(), r, p.working)
		p.decided()
		return
	}
	if p.failures++; p.failures == mostFailed {
		p.o.Logger.Warn("the temperature can't be read any more: only slowness is watched", "sensor", p.o.Sensor.Name(), "error", err)
		p.decided()
	}
}

// blind: there is no sensor, or it fails.
func (p *Pacer) blind() bool { return p.control == nil || p.failures >= mostFailed }

func (p *Pacer) duty() float64 {
	if p.blind() {
		return p.governor.Duty()
	}
	return p.control.Duty()
}

func (p *Pacer) decided() {
	resting := p.duty() < 1
	if p.active.Swap(resting) != resting {
		p.o.Logger.Debug("pace", "resting", resting, "temp", p.last.TempC)
		p.ledger = ledger{}
	}
}

// Active says whether rests may be needed now. It costs one atomic load.
func (p *Pacer) Active() bool { return p.active.Load() }

// Begin tells that a step begins.
func (p *Pacer) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now()-p.begun >= asleep {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	p.working, p.begun, p.resting = true, p.now(), 0
}

// Ran tells of a submission that is finished: what it was, what it was expected to cost
// in any unit (0: not to be compared), how long it ran, and how long the device was idle
// before it.
func (p *Pacer) Ran(k Key, cost float64, busy, idle time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran(busy, idle)
	p.drift.Ran(k, cost, busy)
}

// RanUntimed tells of a submission of which only an estimate is known.
func (p *Pacer) RanUntimed(busy time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran(busy, p.unseen)
}

func (p *Pacer) ran(busy, idle time.Duration) {
	rested := min(p.unseen, idle)
	p.unseen = 0
	if p.control != nil {
		p.control.Ran(busy, idle, rested)
	}
	p.ledger.ran(busy, idle, p.duty())
}

// Due says whether a rest would be due once more work, submitted or recorded but not yet
// told by Ran, is done.
func (p *Pacer) Due(more time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger.due(more, p.duty())
}

// Longest is how long a submission should run at most, so that one rest can make it good;
// 0: no limit.
func (p *Pacer) Longest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return longest(p.duty())
}

// Rest sleeps for as long as is due, or until ctx is done, and returns how long it was.
// The device must be idle.
func (p *Pacer) Rest(ctx context.Context) time.Duration {
	p.mu.Lock()
	d := p.ledger.rest()
	p.mu.Unlock()
	if d <= 0 || ctx.Err() != nil {
		return 0
	}
	begin := time.Now()
	p.timer.Reset(d)
	select {
	case <-p.timer.C:
	case <-ctx.Done():
		p.timer.Stop()
	}
	slept := time.Since(begin)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting += slept
	p.unseen += slept
	return slept
}

// End tells that a step has ended, well or not.
func (p *Pacer) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.working = false
	took := (now - p.begun).Seconds()
	p.begun = now
	p.drift.Step(now)
	p.governor.Decide(now, p.drift)
	if p.blind() {
		p.decided()
	}
	forget := math.Exp(-took / recentSteps)
	p.recent.steps = p.recent.steps*forget + 1
	p.recent.seconds = p.recent.seconds*forget + took
	p.recent.rested = p.recent.rested*forget + p.resting.Seconds()
}
