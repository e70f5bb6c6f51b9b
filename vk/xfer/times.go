package xfer

import (
	"sync"
	"time"

	"leat/vk"
)

// Done is a submission that has ended: a Submit, or a part of one.
type Done struct {
	Lane  int
	Tag   uint64 // of its first copy
	Bytes int64

	// On the host's clock, not before the end of the one before on the lane. Where a queue
	// has no timestamps, from the submission until its end was seen.
	Begin, End time.Time
}

// times is the account of when the lanes copied.
type times struct {
	clock   *vk.Clock
	stamped bool       // by the device: else by the host
	done    func(Done) // nil: nobody listens

	mu    sync.Mutex
	busy  union
	ticks uint64        // a timestamp,
	at    time.Duration // and where it is among busy's intervals
	told  time.Time     // when the last submission was accounted for
}

// forget is how long after the last submission the next one's timestamps are taken for a
// new beginning: a narrow counter goes round in less than an hour.
const forget = time.Minute

// ended accounts for l's submission c, whose end was seen just now.
func (t *times) ended(l *lane, c *command) {
	now := time.Now()
	d := Done{Lane: l.index, Tag: c.tag, Bytes: c.bytes, Begin: c.submitted, End: now}
	if t.stamped {
		for _, ticks := range c.ticks {
			t.clock.Saw(ticks, c.submitted, now)
		}
		if t.done != nil {
			d.Begin, _ = t.clock.At(c.ticks[0])
			d.End, _ = t.clock.At(c.ticks[1])
		}
	}
	// What is known of the clock may have changed since the one before.
	d.Begin = later(d.Begin, l.ended)
	d.End = later(d.End, d.Begin)
	l.ended = d.End
	t.add(c, d, now)
	if t.done != nil {
		t.done(d)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// add adds to busy.
func (t *times) add(c *command, d Done, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stamped {
		if t.told.IsZero() {
			t.told, t.at = d.Begin, forget
		}
		t.busy.add(t.at+d.Begin.Sub(t.told), t.at+d.End.Sub(t.told))
		t.at, t.told = t.at+now.Sub(t.told), now
		return
	}
	if now.Sub(t.told) > forget {
		t.busy.restart()
		t.ticks, t.at = c.ticks[0], forget // not 0: another lane's may have begun before
	}
	begin, end := t.at+t.clock.Between(t.ticks, c.ticks[0]), t.at+t.clock.Between(t.ticks, c.ticks[1])
	t.busy.add(begin, end)
	t.ticks, t.at, t.told = c.ticks[1], end, now
}

// Busy is how long at least one copy was under way, as far as submissions are known to
// have ended: see [Uploader.Collect].
func (u *Uploader) Busy() time.Duration {
	u.times.mu.Lock()
	defer u.times.mu.Unlock()
	return u.times.busy.total()
}

// Collect accounts for the submissions that have ended by now. Submit does so by and by.
func (u *Uploader) Collect() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.lanes {
		if l.open == 0 {
			continue
		}
		now, err := l.timeline.Value()
		if err != nil {
			return err
		}
		if err := l.collect(now); err != nil {
			return err
		}
	}
	return nil
}

// After is how long after a timestamp of the device t's copies ended: 0 or less where
// they were there already. It knows that only of what was collected, and where queues
// have timestamps.
func (u *Uploader) After(t Ticket, ticks uint64) (late time.Duration, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.times.stamped {
		return 0, false
	}
	for i, l := range u.lanes {
		for k := range l.commands {
			if c := &l.commands[k]; t[i] > 0 && c.value == t[i] { // else it ended long ago
				if c.ticks[1] == 0 {
					return 0, false
				}
				late = max(late, u.times.clock.Between(ticks, c.ticks[1]))
			}
		}
	}
	return late, true
}

// collect accounts for the submissions that had ended when the timeline stood at now.
func (l *lane) collect(now uint64) error {
	for ; l.open > 0; l.open-- {
		c := &l.commands[(l.next+len(l.commands)-l.open)%len(l.commands)]
		if c.value > now {
			return nil
		}
		if l.stamps != nil {
			if err := l.stamps.Read(c.query, c.ticks[:]); err != nil {
				return err
			}
		}
		l.times.ended(l, c)
	}
	return nil
}
