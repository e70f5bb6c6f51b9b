package exec

import (
	"slices"
	"testing"
)

// The estimator must come to allow about the target time, on devices a thousand times
// apart, and never split below what the kernels can address.
func TestEstimatorLearns(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64 // flop/s of the device
	}{{"slow", 1e9}, {"yardstick", baseRate}, {"fast", 20e12}} {
		e := estimator{scale: 1, target: defaultTarget}
		const perRow, n = 1e8, 512
		for range 200 {
			rows := max(rowGroup, e.rows(0, 0, perRow, n))
			e.learn(expected{flops: float64(rows) * perRow}, float64(rows)*perRow/c.rate)
		}
		rows := max(rowGroup, e.rows(0, 0, perRow, n))
		seconds := float64(rows) * perRow / c.rate
		if rows < n && (rows%rowGroup != 0 || seconds > 2*defaultTarget || seconds < defaultTarget/2) && rows != rowGroup {
			t.Errorf("%s: %d rows take %.2f s, wanted about %.2f", c.name, rows, seconds, defaultTarget)
		}
		if rows == n && seconds > 2*defaultTarget {
			t.Errorf("%s: all rows at once take %.2f s", c.name, seconds)
		}
	}
}

func TestEstimatorFullSubmission(t *testing.T) {
	e := estimator{scale: 1, target: defaultTarget}
	if n := e.rows(baseBandwidth*defaultTarget, 0, 1, 100); n != 0 {
		t.Errorf("a full submission takes %d more rows", n)
	}
}

// The device must not wait while much of a step is recorded, and a resident model must not become many submissions.
func TestUnitsPerSubmit(t *testing.T) {
	var got []int
	for i := range 4 {
		got = append(got, unitsPerSubmit(i))
	}
	if want := []int{2, 8, 24, 24}; !slices.Equal(got, want) {
		t.Errorf("units of the first submissions are %v, want %v", got, want)
	}
}
