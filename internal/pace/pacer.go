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
	Sensor  Sensor       // the pacer closes it; nil: there is none, and the pacer goes by drift
	Layers  int          // layers of the model, for [Report.RestPerLayer]
	Logger  *slog.Logger // needed
}

// Pacer watches a device beside the steps that run on it, and inserts rests between
// submissions when it gets too hot. One goroutine runs steps; any may ask for the report.
type Pacer struct {
	o      Options
	start  time.Time   // zero of the clock that parts of the pacer are told
	active atomic.Bool // rests may be needed; read on the step's path
	timer  *time.Timer // ends a rest
	watch  watching

	mu       sync.Mutex
	control  *Controller // finds the duty by temperature; nil without a sensor
	drift    *Drift
	governor *Governor // finds the duty by drift
	ledger   ledger
	last     Reading       // the newest reading
	failures int           // readings in a row that failed
	step     stepTimes     // of the step under way, or of the last one
	unseen   time.Duration // rested since Ran told of idle time last
	recent   recent
}

// stepTimes are times of a step.
type stepTimes struct {
	working bool          // the step is under way
	begun   time.Duration // when it began; once it has ended, when it ended
	resting time.Duration // rested so far
}

// watching is the goroutine that reads the sensor.
type watching struct {
	wake   chan struct{} // a step begins after a long pause
	done   chan struct{} // closed to end the goroutine
	closed sync.Once
	wg     sync.WaitGroup
}

// recent sums up steps, their seconds and the seconds rested in them. Older steps count less: by e after recentSteps seconds of steps.
type recent struct{ steps, seconds, rested float64 }

const (
	every       = 500 * time.Millisecond // between readings
	asleep      = 5 * time.Second        // without a step, after which the sensor is not read
	mostFailed  = 5                      // failed readings in a row after which a sensor is not used any more
	recentSteps = 10.0                   // seconds
)

// New starts a pacer.
func New(o Options) *Pacer {
	p := &Pacer{
		o: o, start: time.Now(), drift: NewDrift(), governor: NewGovernor(),
		watch: watching{wake: make(chan struct{}, 1), done: make(chan struct{})}, timer: time.NewTimer(0),
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
	p.watch.wg.Add(1)
	go p.readOften()
	return p
}

// Close ends the watching and closes the sensor; safe to call twice.
func (p *Pacer) Close() (err error) {
	p.watch.closed.Do(func() {
		close(p.watch.done)
		p.watch.wg.Wait()
		if p.o.Sensor != nil {
			err = p.o.Sensor.Close()
		}
	})
	return err
}

// now is the time since the pacer was made.
func (p *Pacer) now() time.Duration { return time.Since(p.start) }

// readOften reads the sensor while steps run. It leaves an idle device alone: reading it can
// keep a laptop's GPU from sleeping.
func (p *Pacer) readOften() {
	defer p.watch.wg.Done()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.watch.done:
			return
		case <-tick.C:
		}
		if p.idleFor() < asleep {
			p.sense()
			continue
		}
		tick.Stop()
		select {
		case <-p.watch.done:
			return
		case <-p.watch.wake:
		}
		p.sense()
		tick.Reset(every)
	}
}

// idleFor is the time since the last step ended; 0 while one is under way.
func (p *Pacer) idleFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step.working {
		return 0
	}
	return p.now() - p.step.begun
}

// sense reads the sensor, and has the controller decide.
func (p *Pacer) sense() {
	r, err := p.o.Sensor.Read() // outside the lock: it may be slow
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.failures, p.last = 0, r
		p.control.Sense(p.now(), r, p.step.working)
		p.decided()
		return
	}
	if p.failures++; p.failures == mostFailed {
		p.o.Logger.Warn("the temperature can't be read any more: only slowness is watched", "sensor", p.o.Sensor.Name(), "error", err)
		p.decided()
	}
}

// blind reports whether the pacer must go by drift: there is no sensor, or it failed too often.
func (p *Pacer) blind() bool { return p.control == nil || p.failures >= mostFailed }

// duty is the share of time the device may work.
func (p *Pacer) duty() float64 {
	if p.blind() {
		return p.governor.Duty()
	}
	return p.control.Duty()
}

// decided notes whether rests are needed, once the duty may have changed.
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
	if p.now()-p.step.begun >= asleep {
		select {
		case p.watch.wake <- struct{}{}:
		default:
		}
	}
	p.step = stepTimes{working: true, begun: p.now()}
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

// RanUntimed tells of a finished submission without timestamps: busy is an estimate.
func (p *Pacer) RanUntimed(busy time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran(busy, p.unseen)
}

// ran accounts for a submission, and for the idle time before it.
func (p *Pacer) ran(busy, idle time.Duration) {
	rested := min(p.unseen, idle)
	p.unseen = 0
	if p.control != nil {
		p.control.Ran(busy, idle, rested)
	}
	p.ledger.ran(busy, idle, p.duty())
}

// Due says whether a rest will be due once more work is done. more is the work that is submitted or recorded, and that Ran has not yet told of.
func (p *Pacer) Due(more time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ledger.due(more, p.duty())
}

// Longest is how long a submission should run at most, so that one rest suffices for it;
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
	p.step.resting += slept
	p.unseen += slept
	return slept
}

// End tells that a step has ended, well or not.
func (p *Pacer) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.step.working = false
	took := (now - p.step.begun).Seconds()
	p.step.begun = now
	p.drift.Step(now)
	p.governor.Decide(now, p.drift)
	if p.blind() {
		p.decided()
	}
	forget := math.Exp(-took / recentSteps)
	p.recent.steps = p.recent.steps*forget + 1
	p.recent.seconds = p.recent.seconds*forget + took
	p.recent.rested = p.recent.rested*forget + p.step.resting.Seconds()
}
