package xfer

import "time"

// union is how long at least one of many intervals lasted. They may come in any order,
// if what comes late is not older than the last mostOpen ones.
type union struct {
	closed time.Duration // of intervals that were dropped from open
	until  time.Duration // their end
	open   []interval    // in order, apart from each other
}

type interval struct{ begin, end time.Duration }

// mostOpen is more than what one lane can be accounted for before another.
const mostOpen = 3 * maxCommands

func (u *union) add(begin, end time.Duration) {
	begin = max(begin, u.until)
	if begin >= end {
		return
	}
	i := len(u.open)
	for i > 0 && u.open[i-1].begin > begin {
		i--
	}
	u.open = append(u.open, interval{})
	copy(u.open[i+1:], u.open[i:])
	u.open[i] = interval{begin, end}
	u.join()
	if len(u.open) == mostOpen {
		u.close(1)
	}
}

// join makes one of intervals that meet.
func (u *union) join() {
	n := 0
	for _, v := range u.open[1:] {
		if last := &u.open[n]; v.begin <= last.end {
			last.end = max(last.end, v.end)
			continue
		}
		n++
		u.open[n] = v
	}
	u.open = u.open[:n+1]
}

// close drops the n oldest intervals.
func (u *union) close(n int) {
	for _, v := range u.open[:n] {
		u.closed += v.end - v.begin
		u.until = v.end
	}
	u.open = append(u.open[:0], u.open[n:]...)
}

// restart forgets when all intervals were, but not how long: the next may begin at 0.
func (u *union) restart() {
	u.close(len(u.open))
	u.until = 0
}

func (u *union) total() time.Duration {
	sum := u.closed
	for _, v := range u.open {
		sum += v.end - v.begin
	}
	return sum
}
