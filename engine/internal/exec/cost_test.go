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

// What a quick device is told of small work is overhead: the next prompt must not be cut to pieces for it. A slow device's
// small work, which takes long, does count.
func TestEstimatorSmallWork(t *testing.T) {
	quickly, slowly := estimator{scale: 1, target: defaultTarget}, estimator{scale: 1, target: defaultTarget}
	for range 200 {
		quickly.learn(expected{flops: 100e9}, 0.4e-3)
		quickly.learn(expected{bytes: 600e3}, 0.4e-3) // a small head, and the choice of a token
		slowly.learn(expected{bytes: 600e3}, 20e-3)
	}
	if n := quickly.rows(0, 0, 1e9, 512); n != 512 {
		t.Errorf("a device that does 250 TFLOPS is given %d of 512 rows of 1 GFLOP at a time", n)
	}
	if n := slowly.rows(0, 0, 1e9, 512); n > 8 {
		t.Errorf("a device that takes 20 ms for 600 KB is given %d rows of 1 GFLOP at a time", n)
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
