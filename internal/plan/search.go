package plan

import (
	"errors"

	"leat/decompose/pack"
	"leat/internal/arch"
)

// Search finds two VRAM budgets of a model: the smallest with which it runs, and the smallest with which it is all resident and prompts are fast.
type Search struct {
	Hyper  *arch.Hyper                             // the model's hyperparameters
	Model  *pack.Model                             // the model's tensors
	Within func(deviceBytes int64) (Budget, error) // returns the whole budget of a run with deviceBytes of VRAM
}

// SearchStep is the granule of VRAM budgets: a search finds multiples of it.
const SearchStep = 1 << 20

// Make plans the model within a VRAM budget. The error is a [*BudgetError] if the budget can't hold the model.
func (s *Search) Make(deviceBytes int64) (*Plan, error) {
	b, err := s.Within(deviceBytes)
	if err != nil {
		return nil, err
	}
	return Make(s.Hyper, s.Model, b)
}

// Least is the smallest VRAM budget with which the model can run, a multiple of [SearchStep]. Within must set the
// context's length. Without one, the context would shrink to fit almost any budget.
func (s *Search) Least() (int64, error) {
	_, err := s.Make(1) // 1 byte, because a budget of 0 asks for the default
	var small *BudgetError
	if !errors.As(err, &small) {
		return 0, err
	}
	return LeastEnough(small.Need/2, 2*small.Need+SearchStep, func(deviceBytes int64) bool {
		_, err := s.Make(deviceBytes)
		return err == nil
	}), nil
}

// AllResident is the smallest VRAM budget, a multiple of [SearchStep], with which nothing is streamed and steps have as many rows as with a
// 16th more VRAM. A budget for the weights alone would leave room for steps of few rows only, and prompts would be slow.
func (s *Search) AllResident() (int64, error) {
	least, err := s.Least()
	if err != nil {
		return 0, err
	}
	most := least
	for i := range s.Model.Units {
		most += s.Model.Units[i].Bytes
	}
	most += most/8 + 1<<30
	chunk := func(deviceBytes int64) int { // 0: something is streamed
		if p, err := s.Make(deviceBytes); err == nil && p.StreamedBytes == 0 {
			return p.Chunk
		}
		return 0
	}
	barely := LeastEnough(least, most, func(deviceBytes int64) bool { return chunk(deviceBytes) > 0 })
	roomy := (barely/SearchStep + barely/SearchStep/moreRows) * SearchStep
	rows := chunk(roomy)
	return LeastEnough(barely, roomy, func(deviceBytes int64) bool { return chunk(deviceBytes) >= rows }), nil
}

// moreRows limits the VRAM that [Search.AllResident] adds for steps of more rows: a 16th of the VRAM with which nothing is streamed.
const moreRows = 16

// LeastEnough is the smallest budget from low to high, a multiple of [SearchStep], for which enough is true. Once true, enough must stay true
// for larger budgets. LeastEnough does not try high: high, rounded down, is the result if enough is true for no smaller budget.
func LeastEnough(low, high int64, enough func(deviceBytes int64) bool) int64 {
	low, high = low/SearchStep, high/SearchStep
	for low < high {
		if mid := low + (high-low)/2; enough(mid * SearchStep) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low * SearchStep
}
