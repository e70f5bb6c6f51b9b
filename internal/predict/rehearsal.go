package predict

import "slices"

// Rehearsal is how long a few of the model's layers took when package engine ran them, all
// in VRAM except for Streamed. Rates of kernels leave out waits between kernels and the host's part. A rehearsal includes them.
type Rehearsal struct {
	Steps    []StepShape          `json:"steps"`  // the shapes of the steps that were run
	Layers   map[string][]float64 `json:"layers"` // by class of layers: seconds of one layer, for each of Steps
	Bytes    map[string]int64     `json:"bytes"`  // by class of layers: bytes of a layer's weights with one of its experts
	Overhead []float64            `json:"rest"`   // seconds of a step outside layers and head, for each of Steps
	Head     float64              `json:"head"`   // seconds of the final norm and the head, for one row
	Chunk    int                  `json:"chunk"`  // rows of the longest step that the plan has; on a slow device, Steps has only shorter ones

	// HostTrip is the seconds by which a step of one row takes longer for each layer that asks the host for its experts, with all experts in VRAM; 0: not
	// known.
	HostTrip float64 `json:"trip"`
	// ConditionalTrip is the seconds by which a step of one row takes longer for each layer that runs on a condition instead of asking the host; 0: not known,
	// or the device can't run layers on a condition.
	ConditionalTrip float64 `json:"ahead"`

	Streamed StreamedLayers `json:"streamed"` // the layers when they were streamed; zero: not known
}

// StreamedLayers is how long a few layers took in a step of one row when they were streamed from RAM.
type StreamedLayers struct {
	Seconds  float64 `json:"seconds"`          // time of the layers when they were streamed
	Resident float64 `json:"resident_seconds"` // time of the same layers in VRAM
	Units    int     `json:"units"`            // number of streamed units
	Bytes    int64   `json:"bytes"`            // bytes of all streamed units
}

// perUnit is the device's time for a streamed unit in addition to its kernels: the unit has a submission of its own, recorded anew for each
// token. linkSeconds is the time that the link takes for all units. perUnit is 0 if the link works beside the
// kernels (oneQueue is false) and is slower than they are, because uploads then hide the time.
func (s *StreamedLayers) perUnit(linkSeconds float64, oneQueue bool) float64 {
	if s.Units == 0 || !oneQueue && linkSeconds >= s.Resident {
		return 0
	}
	if oneQueue {
		return max(0, s.Seconds-s.Resident-linkSeconds) / float64(s.Units)
	}
	return max(0, s.Seconds-s.Resident) / float64(s.Units)
}

// StepShape is a step's number of rows, and the number of positions that its last row attends to.
type StepShape struct {
	Rows    int `json:"rows"`    // rows of the step
	Context int `json:"context"` // positions that the last row attends to, its own included
}

// meanPositions is how many positions a row of the step attends to, on average.
func (s StepShape) meanPositions() float64 { return float64(s.Context) - float64(s.Rows-1)/2 }

// contextAxis accepts steps of one row, and orders them by context. It is an axis of [interpolate].
func (s StepShape) contextAxis() (x float64, ok bool) { return float64(s.Context), s.Rows == 1 }

// rowsAxis accepts steps whose rows attend to each other only, and orders them by rows. It is an axis of [interpolate].
func (s StepShape) rowsAxis() (x float64, ok bool) { return float64(s.Rows), s.Context == s.Rows }

// Sound reports whether r is not nil and complete.
func (r *Rehearsal) Sound() bool {
	if r == nil || len(r.Layers) == 0 || len(r.Steps) == 0 || r.Steps[0] != (StepShape{1, 1}) || len(r.Overhead) != len(r.Steps) {
		return false
	}
	for _, s := range r.Steps {
		if s.Rows < 1 || s.Context < s.Rows {
			return false
		}
	}
	if len(r.Bytes) != len(r.Layers) {
		return false
	}
	for class, seconds := range r.Layers {
		if len(seconds) != len(r.Steps) || r.Bytes[class] <= 0 {
			return false
		}
	}
	return true
}

// secondsAt is the time of a part of a step of shape s. seconds is the part's measured time for each of Steps.
func (r *Rehearsal) secondsAt(seconds []float64, s StepShape) float64 {
	if s.Rows == 1 {
		return max(0, interpolate(r.Steps, seconds, StepShape.contextAxis, float64(s.Context)))
	}
	// The time of a step whose rows attend to each other only, and then the time of all other positions.
	most := 1
	for _, m := range r.Steps {
		most = max(most, m.Rows)
	}
	known := min(s.Rows, most)
	t := interpolate(r.Steps, seconds, StepShape.rowsAxis, float64(known)) * float64(s.Rows) / float64(known)
	seen := StepShape{known, known}.meanPositions()
	return max(0, t+(s.meanPositions()-seen)*r.positionSeconds(seconds, s.Rows, most))
}

// positionSeconds is the time that a step of rows takes longer for each further position that its rows attend to. seconds is as in secondsAt; most is the
// largest number of rows in Steps. One row leaves a large device idle: more rows take no longer until the device is full.
func (r *Rehearsal) positionSeconds(seconds []float64, rows, most int) float64 {
	slope := func(n int) float64 {
		low, high := -1, -1
		for i, s := range r.Steps {
			if s.Rows == n && (low < 0 || s.Context < r.Steps[low].Context) {
				low = i
			}
			if s.Rows == n && (high < 0 || s.Context > r.Steps[high].Context) {
				high = i
			}
		}
		if low == high {
			return 0
		}
		return max(0, (seconds[high]-seconds[low])/(r.Steps[high].meanPositions()-r.Steps[low].meanPositions()))
	}
	return max(slope(1), slope(most)*float64(rows)/float64(most))
}

// interpolate interpolates seconds, the times of steps, at x. axis gives a step's coordinate, and reports whether the step counts. Beyond the last
// coordinate it continues the line between the last two; before the first it is constant.
func interpolate(steps []StepShape, seconds []float64, axis func(StepShape) (float64, bool), x float64) float64 {
	var xs, ys []float64
	for i, s := range steps {
		if at, ok := axis(s); ok {
			n, _ := slices.BinarySearch(xs, at)
			xs, ys = slices.Insert(xs, n, at), slices.Insert(ys, n, seconds[i])
		}
	}
	switch n, found := slices.BinarySearch(xs, x); {
	case len(xs) == 0:
		return 0
	case found:
		return ys[n]
	case len(xs) == 1 || n == 0:
		return ys[0]
	default:
		n = min(n, len(xs)-1)
		return ys[n-1] + (ys[n]-ys[n-1])*(x-xs[n-1])/(xs[n]-xs[n-1])
	}
}

// layerSeconds is the time of a layer of a class in a step of shape s. bytes is the layer's size as in Bytes. A class that was not rehearsed
// takes as long for each byte as the class nearest in size.
func (r *Rehearsal) layerSeconds(class string, bytes int64, s StepShape) float64 {
	if seconds, ok := r.Layers[class]; ok {
		return r.secondsAt(seconds, s)
	}
	best := ""
	for c, n := range r.Bytes {
		if d := abs(n-bytes) - abs(r.Bytes[best]-bytes); best == "" || d < 0 || d == 0 && c < best {
			best = c
		}
	}
	return r.secondsAt(r.Layers[best], s) * float64(bytes) / float64(max(1, r.Bytes[best]))
}

// abs is the absolute value of n.
func abs(n int64) int64 { return max(n, -n) }
