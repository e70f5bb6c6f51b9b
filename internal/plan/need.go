package plan

import (
	"errors"
	"slices"

	"leat/decompose/pack"
	"leat/internal/arch"
)

// Question is what is asked about a model: how a budget and a machine suit it.
type Question struct {
	Hyper   *arch.Hyper
	Model   *pack.Model
	Within  func(deviceBytes int64) (Budget, error) // what a run may spend that is given so much VRAM
	Speeds  Speeds
	Context int // tokens in the session while decoding; 0: half of what it can hold, 1024 at most
	Prompt  int // tokens
}

// Answer is a plan and what it reaches.
type Answer struct {
	Plan       *Plan
	Prediction Prediction
}

// At answers for one VRAM budget. The error is a [*BudgetError] where it can't hold.
func (q *Question) At(deviceBytes int64) (Answer, error) {
	b, err := q.Within(deviceBytes)
	if err != nil {
		return Answer{}, err
	}
	return q.Of(b)
}

// Of answers for a budget.
func (q *Question) Of(b Budget) (Answer, error) {
	p, err := Make(q.Hyper, q.Model, b)
	if err != nil {
		return Answer{}, err
	}
	ctx := q.Context
	if ctx == 0 {
		ctx = min(p.ContextLength/2, 1024)
	}
	return Answer{p, p.Predict(q.Speeds, q.Hyper, ctx, q.Prompt)}, nil
}

const mibi = 1 << 20

// Least is the smallest VRAM budget, in whole MiB, that holds at all. The context must
// be settled in the budget: else it would shrink to fit anything.
func (q *Question) Least() (int64, error) {
	_, err := q.At(1) // none means that nothing was asked for
	var small *BudgetError
	if !errors.As(err, &small) {
		return 0, err
	}
	return search(small.Need/2/mibi, 2*small.Need/mibi+1, func(n int64) bool {
		_, err := q.At(n * mibi)
		return err == nil
	}) * mibi, nil
}

// All is the smallest VRAM budget, in whole MiB, with which nothing is streamed, and steps have as many rows as a
// little more VRAM gives them: what holds no more than the weights reads a prompt by few rows.
func (q *Question) All() (int64, error) {
	least, err := q.Least()
	if err != nil {
		return 0, err
	}
	most := least
	for i := range q.Model.Units {
		most += q.Model.Units[i].Bytes
	}
	most += most/8 + 1<<30
	chunk := func(n int64) int { // 0: something is streamed
		b, err := q.Within(n * mibi)
		if err != nil {
			return 0
		}
		if p, err := Make(q.Hyper, q.Model, b); err == nil && p.StreamedBytes == 0 {
			return p.Chunk
		}
		return 0
	}
	barely := search(least/mibi, most/mibi, func(n int64) bool { return chunk(n) > 0 })
	roomy := barely + barely/allRoom
	rows := chunk(roomy)
	return search(barely, roomy, func(n int64) bool { return chunk(n) >= rows }) * mibi, nil
}

// allRoom is the part of the VRAM that more rows of a step may cost.
const allRoom = 16

// Reaching is the smallest VRAM budget, in whole MiB, that decodes tokensPerSec; 0 where
// none does, with the answer for all in VRAM.
func (q *Question) Reaching(tokensPerSec float64) (int64, Answer, error) {
	least, err := q.Least()
	if err != nil {
		return 0, Answer{}, err
	}
	all, err := q.All()
	if err != nil {
		return 0, Answer{}, err
	}
	best, err := q.At(all)
	if err != nil || best.Prediction.DecodePerSec < tokensPerSec {
		return 0, best, err
	}
	n := search(least/mibi, all/mibi, func(n int64) bool {
		a, err := q.At(n * mibi)
		return err == nil && a.Prediction.DecodePerSec >= tokensPerSec
	}) * mibi
	best, err = q.At(n)
	return n, best, err
}

// search is the smallest n of low to high for which enough holds, if it holds from there on.
func search(low, high int64, enough func(int64) bool) int64 {
	for low < high {
		if mid := low + (high-low)/2; enough(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// Drives is the answer with as many drives of the same kind as given, striped.
func (q *Question) Drives(n int, b Budget) (Answer, error) {
	more := q.WithDrives(float64(n))
	return more.Of(b)
}

// WithDrives is the question with so many times the drives.
func (q *Question) WithDrives(times float64) Question {
	more := *q
	more.Speeds.DiskBytesPerSec *= times
	more.Speeds.DiskFirstBytesPerSec *= times
	return more
}

// WithLink is the question with a link so many times as fast.
func (q *Question) WithLink(times float64) Question {
	more := *q
	more.Speeds.LinkBytesPerSec *= times
	more.Speeds.LinkBusyBytesPerSec *= times
	more.Speeds.Bursts = slices.Clone(q.Speeds.Bursts)
	for i := range more.Speeds.Bursts {
		more.Speeds.Bursts[i].Seconds /= times
	}
	return more
}
