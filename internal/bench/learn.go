package bench

import "time"

// What the disk did before a row is believed rather than what was measured before the load, where it was enough, and another rate.
const (
	learnBytes = 2 << 30
	learnOther = 0.1  // of the rate that was measured
	learnBusy  = 0.95 // of the time; a disk that waits for others is not slow
)

// learned is the rate of a disk that read so many bytes while it was busy, a part of a time, where that tells another one than measured.
func learned(measured float64, bytes int64, busy, of time.Duration) (rate float64, ok bool) {
	if bytes < learnBytes || busy <= 0 {
		return 0, false
	}
	rate = float64(bytes) / busy.Seconds()
	if rate < (1-learnOther)*measured && busy.Seconds() >= learnBusy*of.Seconds() {
		return rate, true
	}
	return rate, rate > (1+learnOther)*measured
}

// learnDisk has this row and those to come predicted by what the disk did from the end of the load until the row was timed: it says nothing
// of the row itself.
func (b *run) learnDisk(until sample) {
	s, from := b.o.Speeds, &b.loaded
	if s == nil || s.Disk.BytesPerSec <= 0 {
		return
	}
	rate, ok := learned(s.Disk.BytesPerSec, until.stats.DiskBytes-from.stats.DiskBytes, until.stats.Disk-from.stats.Disk, until.at.Sub(from.at))
	if !ok {
		return
	}
	b.note("the disk gave %.2f GB/s before what was timed, and %.2f when it was measured: predicted with what it gave", rate/1e9, s.Disk.BytesPerSec/1e9)
	better := *s
	better.Disk.BytesPerSec = rate
	b.o.Speeds = &better
}
