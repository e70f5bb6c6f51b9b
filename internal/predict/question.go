package predict

import (
	"slices"

	"leat/internal/plan"
)

// Question asks how fast a model will run on a machine with some VRAM budget.
type Question struct {
	plan.Search
	Speeds  Speeds // speeds of the machine
	Context int    // tokens in the session while it decodes; 0: half of what the session can hold, at most 1024
	Prompt  int    // tokens of the prompt whose time is predicted
}

// Answer is a plan for a budget, and how fast it will run.
type Answer struct {
	Plan       *plan.Plan // the plan for the budget
	Prediction Prediction // how fast the plan will run
}

// At answers for a VRAM budget. The error is a [*plan.BudgetError] if the model does not fit.
func (q *Question) At(deviceBytes int64) (Answer, error) {
	b, err := q.Within(deviceBytes)
	if err != nil {
		return Answer{}, err
	}
	return q.Of(b)
}

// Of answers for a whole budget: VRAM, RAM and everything else that a plan depends on.
func (q *Question) Of(b plan.Budget) (Answer, error) {
	p, err := plan.Make(q.Hyper, q.Model, b)
	if err != nil {
		return Answer{}, err
	}
	ctx := q.Context
	if ctx == 0 {
		ctx = min(p.ContextLength/2, 1024)
	}
	return Answer{p, Plan(p, q.Speeds, q.Hyper, ctx, q.Prompt)}, nil
}

// Reaching finds the smallest VRAM budget, a multiple of [plan.SearchStep], with which the model decodes tokensPerSec, and the answer for it. If even the
// budget of [plan.Search.AllResident] is too small, it returns 0, and the answer for that budget.
func (q *Question) Reaching(tokensPerSec float64) (int64, Answer, error) {
	least, err := q.Least()
	if err != nil {
		return 0, Answer{}, err
	}
	all, err := q.AllResident()
	if err != nil {
		return 0, Answer{}, err
	}
	best, err := q.At(all)
	if err != nil || best.Prediction.DecodePerSec < tokensPerSec {
		return 0, best, err
	}
	n := plan.LeastEnough(least, all, func(deviceBytes int64) bool {
		a, err := q.At(deviceBytes)
		return err == nil && a.Prediction.DecodePerSec >= tokensPerSec
	})
	best, err = q.At(n)
	return n, best, err
}

// Drives answers for a budget as if the model's file lay on n striped drives instead of one.
func (q *Question) Drives(n int, b plan.Budget) (Answer, error) {
	more := q.WithDrives(float64(n))
	return more.Of(b)
}

// WithDrives returns the question with more striped drives: the disk is faster by the factor times.
func (q *Question) WithDrives(times float64) Question {
	more := *q
	more.Speeds.Disk.BytesPerSec *= times
	more.Speeds.Disk.FirstBytesPerSec *= times
	return more
}

// WithLink returns the question with a link that is faster by the factor times.
func (q *Question) WithLink(times float64) Question {
	more := *q
	more.Speeds.Link.BytesPerSec *= times
	more.Speeds.Link.BusyBytesPerSec *= times
	more.Speeds.Link.Bursts = slices.Clone(q.Speeds.Link.Bursts)
	for i := range more.Speeds.Link.Bursts {
		more.Speeds.Link.Bursts[i].Seconds /= times
	}
	return more
}
