package bench

import (
	"fmt"
	"time"

	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/predict"
)

// forecast says how long work will take, from predictions and from what was timed before.
type forecast struct {
	speeds *predict.Speeds // nil: nothing is predicted
	limit  time.Duration   // of a row; 0: none
	plan   plan.Plan
	hyper  arch.Hyper

	factor float64 // how much longer prompts took than predicted
	probed float64 // seconds that a prompt of probePrompt tokens took
}

// promptSeconds is about how long n tokens in an empty context take.
func (f *forecast) promptSeconds(n int) float64 {
	if f.speeds == nil {
		return f.probed * max(1, float64(n)/probePrompt)
	}
	return f.factor * predict.Plan(&f.plan, *f.speeds, &f.hyper, n, n).TTFTSeconds
}

// fitPrompt halves a prompt until it can be read within the limit.
func (f *forecast) fitPrompt(n int) int {
	for f.limit > 0 && n > 1 && f.promptSeconds(n) > f.limit.Seconds() {
		n = (n + 1) / 2
	}
	return n
}

// tokenSeconds is about how long a token takes at a depth.
func (f *forecast) tokenSeconds(depth int) float64 {
	if f.speeds == nil {
		return f.probed
	}
	return f.factor * predict.Plan(&f.plan, *f.speeds, &f.hyper, depth+1, 1).DecodeSeconds
}

// promptTook corrects the forecast by a prompt of n tokens that was timed.
func (f *forecast) promptTook(n int, seconds float64) {
	if f.speeds != nil {
		f.factor *= seconds / f.promptSeconds(n)
	}
}

// Thresholds by which learnDisk believes what the disk did before a row rather than what was measured before the load.
const (
	learnBytes = 2 << 30
	learnOther = 0.1  // of the rate that was measured
	learnBusy  = 0.95 // of the time; a disk that waits for others is not slow
)

// learned is the rate of a disk that was busy for a part of a time while it read bytes. ok says that it differs from the rate that was measured.
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

// learnDisk has rows from here on predicted by what the disk did between the end of the load and the time when the row was timed: that says
// nothing of the row itself. The note says so; "": nothing was learned.
func (f *forecast) learnDisk(loaded, until *sample) (note string) {
	s := f.speeds
	if s == nil || s.Disk.BytesPerSec <= 0 {
		return ""
	}
	rate, ok := learned(s.Disk.BytesPerSec, until.stats.DiskBytes-loaded.stats.DiskBytes, until.stats.Disk-loaded.stats.Disk, until.at.Sub(loaded.at))
	if !ok {
		return ""
	}
	better := *s
	better.Disk.BytesPerSec = rate
	f.speeds = &better
	return fmt.Sprintf("the disk gave %.2f GB/s before what was timed, and %.2f when it was measured: predicted with what it gave", rate/1e9, s.Disk.BytesPerSec/1e9)
}
