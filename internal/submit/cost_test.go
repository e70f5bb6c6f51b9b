package submit

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
			e.learn(0, float64(rows)*perRow, float64(rows)*perRow/c.rate)
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
func TestMostParts(t *testing.T) {
	var got []int
	for i := range 4 {
		got = append(got, mostParts(i))
	}
	if want := []int{2, 8, 24, 24}; !slices.Equal(got, want) {
		t.Errorf("parts of the first submissions are %v, want %v", got, want)
	}
}

// A small submission, however slow for its work, must not make the next product come in parts; a long one that ran
// much longer than expected must.
func TestEstimatorWeighs(t *testing.T) {
	const perRow, n = 2 * 28672 * 8192, 512 // a product of a 70B model
	fast := func() *estimator {
		e := &estimator{scale: 1, target: defaultTarget}
		for range 50 {
			e.learn(0, perRow*n, perRow*n/200e12)
		}
		return e
	}
	e := fast()
	if !e.known() {
		t.Error("after 50 products nothing is known of the device")
	}
	e.learn(600e3, 0, 500e-6) // argmax, by one workgroup
	e.learn(100, 0, 20e-6)
	if rows := e.rows(0, 0, perRow, n); rows != n {
		t.Errorf("after a small slow submission %d rows of %d go at once, want all", rows, n)
	}
	for _, known := range []*estimator{fast(), {scale: 1, target: defaultTarget}} {
		e = known
		e.learn(20e3, 0, 0.3) // its kernel was compiled, or a CPU had others to serve
		e.learn(0, 16e6, 16e6/25e9)
		if rows := e.rows(0, 0, 2e6, n); rows != n {
			t.Errorf("after a small submission that stood still %d small rows of %d go at once, want all", rows, n)
		}
	}
	e = fast()
	e.learn(0, perRow*n, 2*defaultTarget)
	if rows := e.rows(0, 0, perRow, n); rows == 0 || rows > n/2 {
		t.Errorf("after a product that took twice the target %d rows of %d go at once, want half or fewer", rows, n)
	}
}
