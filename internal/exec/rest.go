package exec

import (
	"fmt"
	"time"

	"leat/internal/pace"
)

// rest comes before a submission. Where the pacer wants a rest, the device finishes what
// it has, and stays idle for as long as the pacer says; what comes next is recorded
// already.
func (r *run) rest() error {
	p := r.e.Pacer
	if p == nil || r.told == r.used || !p.Active() || !p.Due(r.ahead()) {
		return nil
	}
	r.pause()
	defer r.resume()
	if err := r.e.Compute.Wait(r.ctx, r.e.value); err != nil {
		return fmt.Errorf("wait for the device to rest: %w", err)
	}
	if err := r.account(); err != nil {
		return err
	}
	rested := p.Rest(r.ctx)
	r.timed[r.used].rested = rested
	r.rests += rested
	return nil
}

// due says whether to submit what is recorded, because it has earned a rest.
func (r *run) due() bool {
	p := r.e.Pacer
	if p == nil || !p.Active() {
		return false
	}
	return p.Due(r.ahead() + seconds(r.e.cost.seconds(r.rec.Cost())))
}

// ahead is how long the submissions that were not accounted for yet should run.
func (r *run) ahead() time.Duration {
	var sum float64
	for _, w := range r.timed[r.told:r.used] {
		sum += r.e.cost.seconds(w.bytes, w.flops)
	}
	return seconds(sum)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// finish accounts for a step whose submissions are all over.
func (r *run) finish() error {
	end := time.Now()
	if err := r.account(); err != nil {
		return err
	}
	if r.e.Device.Compute.TimestampBits == 0 && r.used > 0 {
		r.untimed(end)
	}
	if r.e.timer != nil {
		return r.e.timer.finish()
	}
	return nil
}

// account reads the timestamps of the submissions that have finished since the last time,
// which must be all that were submitted, and tells the estimator and the pacer of them.
func (r *run) account() error {
	e := r.e
	if err := e.Weights.Collect(); err != nil {
		return err
	}
	from := r.told
	r.told = r.used
	if err := r.readStamps(from); err != nil {
		return err
	}
	ticks := e.ticks
	var together expected
	for i := range r.timed[from:r.used] {
		s := &r.timed[from+i]
		w := s.expected
		if s.leaps {
			together.bytes += w.bytes
			together.flops += w.flops
			continue
		}
		if s.ends {
			w.bytes, w.flops, together = w.bytes+together.bytes, w.flops+together.flops, expected{}
			if e.ended > 0 {
				ticks[2*i] = e.ended // they began when what was before them ended
			}
		}
		if !r.stamped(s.nth) {
			r.guess(w)
			continue
		}
		before := e.ended
		if from+i == 0 {
			before = 0 // the step begins
		}
		r.ran(s, before, ticks[2*i], ticks[2*i+1])
		busy := e.stamps.Duration(ticks[2*i], ticks[2*i+1])
		e.cost.learn(w, busy.Seconds())
		if e.Ran != nil && s.from != nothing && e.Plan.Units[w.unit].Resident() { // a streamed unit ends its submission
			e.Ran(s.rows, base(w.bytes, w.flops), busy)
		}
		if e.Pacer != nil {
			var idle time.Duration
			if e.ended > 0 {
				idle = e.stamps.Duration(e.ended, ticks[2*i])
			}
			e.Pacer.Ran(pace.Key{Unit: w.unit, Rows: s.rows}, base(w.bytes, w.flops), busy, idle)
		}
		e.ended = ticks[2*i+1]
	}
	return nil
}

// stamped reports whether a command buffer has timestamps.
func (r *run) stamped(nth int) bool {
	return r.e.Device.Compute.TimestampBits > 0 && nth >= 0 && nth < r.e.stamps.Count/2
}

// readStamps reads two timestamps of each submission that has some: at once those that lie side by side.
func (r *run) readStamps(from int) error {
	e, s := r.e, r.timed[from:r.used]
	e.ticks = resize(e.ticks, 2*len(s))
	for i := 0; i < len(s); {
		n := 0
		for i+n < len(s) && s[i+n].nth == s[i].nth+n && r.stamped(s[i+n].nth) && !s[i+n].leaps {
			n++
		}
		if n == 0 {
			i++
			continue
		}
		if err := e.stamps.Read(2*s[i].nth, e.ticks[2*i:2*(i+n)]); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// guess tells the pacer of a submission that has no timestamps: only its own rests are
// known of the idle time.
func (r *run) guess(w expected) {
	e, busy := r.e, seconds(r.e.cost.seconds(w.bytes, w.flops))
	e.ended = 0
	if e.Device.Compute.TimestampBits > 0 { // else untimed knows better
		e.count.compute.Add(int64(busy))
	}
	if p := e.Pacer; p != nil {
		p.RanUntimed(busy)
	}
}
