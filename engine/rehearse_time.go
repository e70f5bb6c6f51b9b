package engine

import (
	"context"
	"slices"
	"time"

	"leat/internal/plan"
	"leat/internal/predict"
	"leat/vk"
)

// stepper runs a step, and says how long it took.
type stepper func(context.Context, predict.StepShape) (time.Duration, error)

// stopwatch times steps of models that are loaded, in turn.
type stopwatch struct {
	once   []stepper     // of each model
	enough time.Duration // for one kind of step
	warm   time.Duration // of steps before the first that is timed
	long   time.Duration // that the largest steps run on end; 0: they don't
}

// A step is timed so often; on a slow device less, but more than once.
const (
	leastTimes, mostTimes = 3, 25
	enoughTime            = 150 * time.Millisecond  // for one kind of step, on a device of its own
	warmTime              = 400 * time.Millisecond  // an idle GPU's clock is a fifth of a busy one's, and takes its time to rise
	slowStep              = 300 * time.Millisecond  // steps of more rows are not tried, unless they are few
	fewRows               = 16                      // kernels for many rows have found their pace by then
	longTime              = 1500 * time.Millisecond // products of many rows take all the power that a GPU may, and it lowers its clock in that time
	slowDevice            = 20 * time.Millisecond   // of one row; then there are fewer kinds of steps
)

func newStopwatch(device vk.DeviceType, once ...stepper) *stopwatch {
	if device == vk.CPU { // its clock is high already, but other programs take turns with it
		return &stopwatch{once: once, enough: 3 * enoughTime, warm: enoughTime}
	}
	return &stopwatch{once: once, enough: enoughTime, warm: warmTime, long: longTime}
}

// time returns how long each of steps takes in each model, and which they are: of nil, as many as are worth it in the first.
func (s *stopwatch) time(ctx context.Context, p *plan.Plan, steps []predict.StepShape) ([][]float64, []predict.StepShape, error) {
	if err := s.warmUp(ctx); err != nil {
		return nil, nil, err
	}
	if steps == nil {
		var err error
		if steps, err = s.choose(ctx, p); err != nil {
			return nil, nil, err
		}
	}
	if len(steps) == 1 {
		s.enough *= 4 / time.Duration(len(s.once)) // there is nothing to take turns with, or little
	}
	seconds, err := s.typical(ctx, steps)
	for i := 0; i < len(s.once) && err == nil; i++ {
		err = s.onEnd(ctx, s.once[i], steps, seconds[i])
	}
	return seconds, steps, err
}

// warmUp lets pipelines be built, clocks rise, and the engine learn how much it may submit.
func (s *stopwatch) warmUp(ctx context.Context) error {
	for _, once := range s.once {
		var sum time.Duration
		for n := 0; n < 2 || sum < s.warm; n++ {
			t, err := once(ctx, predict.StepShape{Rows: 1, Context: 1})
			if err != nil {
				return err
			}
			if n > 0 { // the first builds pipelines: meanwhile the device has nothing to do
				sum += t
			}
		}
	}
	return nil
}

// choose lists the steps to run: decoding in short and long contexts, and more and more rows
// up to the plan's chunk, as long as they take no longer than a moment.
func (s *stopwatch) choose(ctx context.Context, p *plan.Plan) (steps []predict.StepShape, err error) {
	var last time.Duration
	factor := 2
	for n := 1; ; n = min(factor*n, p.Chunk) {
		steps = append(steps, predict.StepShape{Rows: n, Context: n})
		last, err = s.once[0](ctx, steps[len(steps)-1])
		if err == nil && last > slowStep { // it may have built pipelines
			last, err = s.once[0](ctx, steps[len(steps)-1])
		}
		if err != nil {
			return nil, err
		}
		if n == 1 && last > slowDevice {
			factor = 4
		}
		if n == p.Chunk || last > slowStep && n >= fewRows || last > 5*slowStep {
			break
		}
	}
	most := steps[len(steps)-1].Rows
	longest := p.ContextLength
	if factor > 2 {
		longest = min(longest, 1024)
	}
	for _, c := range []int{256, 1024, longest} {
		if c == longest || c < longest && factor == 2 {
			steps = append(steps, predict.StepShape{Rows: 1, Context: c})
		}
	}
	if most > 1 && most < longest {
		steps = append(steps, predict.StepShape{Rows: most, Context: longest})
	}
	return slices.Compact(steps), nil
}

// onEnd times the steps of the most rows again, one behind the other for as long as a prompt may take, and believes the second half
// of that.
func (s *stopwatch) onEnd(ctx context.Context, once stepper, steps []predict.StepShape, seconds []float64) error {
	most := slices.MaxFunc(steps, func(a, b predict.StepShape) int { return a.Rows - b.Rows }).Rows
	if most <= fewRows || s.long == 0 {
		return nil
	}
	times := make([][]time.Duration, len(steps))
	for sum := time.Duration(0); sum < s.long; {
		later := sum >= s.long/2
		for i, step := range steps {
			if step.Rows != most {
				continue
			}
			t, err := once(ctx, step)
			if err != nil {
				return err
			}
			if sum += t; later || len(times[i]) == 0 {
				times[i] = append(times[i], t)
			}
		}
	}
	for i, list := range times {
		if len(list) == 0 {
			continue
		}
		if len(list) > 1 {
			list = list[1:] // of the first half
		}
		slices.Sort(list)
		seconds[i] = list[len(list)/2].Seconds()
	}
	return nil
}

// typical runs the steps in turn, some times, and returns for each model and step how many seconds it takes: the lower
// quartile, as what disturbs only adds.
func (s *stopwatch) typical(ctx context.Context, steps []predict.StepShape) ([][]float64, error) {
	times, sums := make([][][]time.Duration, len(s.once)), make([]time.Duration, len(steps))
	for k := range times {
		times[k] = make([][]time.Duration, len(steps))
	}
	for n := range mostTimes {
		for i, step := range steps {
			if n >= leastTimes && sums[i] >= s.enough || n == leastTimes-1 && sums[i] >= 3*s.enough {
				continue
			}
			for k, once := range s.once {
				t, err := again(ctx, once, step, times[k][i])
				if err != nil {
					return nil, err
				}
				times[k][i], sums[i] = append(times[k][i], t), sums[i]+t
			}
		}
	}
	seconds := make([][]float64, len(s.once))
	for k := range times {
		for _, list := range times[k] {
			slices.Sort(list)
			seconds[k] = append(seconds[k], list[(len(list)-1)/4].Seconds())
		}
	}
	return seconds, nil
}

// again runs a step that took so long before.
func again(ctx context.Context, once stepper, step predict.StepShape, before []time.Duration) (time.Duration, error) {
	if n := len(before); step.Rows == 1 && n > 0 && before[n-1] < slowDevice {
		// A model that decodes records few of its steps; here the one before it was of another kind.
		if _, err := once(ctx, step); err != nil {
			return 0, err
		}
	}
	return once(ctx, step)
}
