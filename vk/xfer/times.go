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
	Ticks uint64 // the device's timestamp of its end; 0 where a queue has none

	lane       *lane
	begin, end time.Time // seen by the host: from the submission on
	began      uint64
}

// Times is when it ran, on the host's clock: not before the end of the one before on its
// lane. Where a queue has no timestamps, it ran until it was seen to have ended. Only
// whoever is told of d may ask, before it returns.
func (d *Done) Times() (begin, end time.Time) {
	l := d.lane
	begin, end = d.begin, d.end
	if l.times.stamped {
		l.times.clock.Saw(d.began, d.begin, d.end)
		l.times.clock.Saw(d.Ticks, d.begin, d.end)
		begin, _ = l.times.clock.At(d.began)
		end, _ = l.times.clock.At(d.Ticks)
	}
	begin = later(begin, l.last.mapped) // what is known of the clock may have changed since
	end = later(end, begin)
	l.last.mapped = end
	return begin, end
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// times is the account of when the lanes copied.
type times struct {
	clock   *vk.Clock
	stamped bool        // by the device: else by the host
	done    func(*Done) // nil: nobody listens

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
func (t *times) ended(l *lane, c *command, began, ended uint64) {
	d := &l.done
	*d = Done{Lane: l.index, Tag: c.tag, Bytes: c.bytes, Ticks: ended, lane: l, begin: later(c.submitted, l.last.end), end: time.Now(), began: began}
	l.last.end = d.end
	t.add(d)
	if t.done != nil {
		t.done(d)
	}
}

// add adds to busy.
func (t *times) add(d *Done) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stamped {
		if t.told.IsZero() {
			t.told, t.at = d.begin, forget
		}
		t.busy.add(t.at+d.begin.Sub(t.told), t.at+d.end.Sub(t.told))
		t.at, t.told = t.at+d.end.Sub(t.told), d.end
		return
	}
	if d.end.Sub(t.told) > forget {
		t.busy.restart()
		t.ticks, t.at = d.began, forget // not 0: another lane's may have begun before
	}
	begin, end := t.at+t.clock.Between(t.ticks, d.began), t.at+t.clock.Between(t.ticks, d.Ticks)
	t.busy.add(begin, end)
	t.ticks, t.at, t.told = d.Ticks, end, d.end
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
		if l.last.value == l.value {
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
