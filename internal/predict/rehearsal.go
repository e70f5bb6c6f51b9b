package predict

import "slices"

// Rehearsal is how long a few of the model's layers took when package engine ran them, all
// in VRAM. It includes what rates leave out: waits between kernels, and the host's part.
type Rehearsal struct {
	Steps    []StepShape          `json:"steps"`  // the shapes that were run
	Layers   map[string][]float64 `json:"layers"` // seconds of a layer by its class, for each of Steps
	Bytes    map[string]int64     `json:"bytes"`  // of a layer's weights with one expert for all, by its class
	Overhead []float64            `json:"rest"`   // seconds of a step outside layers and head, for each of Steps
	Head     float64              `json:"head"`   // seconds of the head and its norm, for one row
	Chunk    int                  `json:"chunk"`  // rows of the longest step that was wanted; Steps ends with fewer rows where the device is slow

	HostTrip        float64 `json:"trip"`  // seconds by which asking the host lengthens a layer whose experts share slots and are all resident, in a step of one row; 0: not known
	ConditionalTrip float64 `json:"ahead"` // seconds by which running on a condition, without asking the host, lengthens such a layer; 0: the device can't, or it is not known

	Streamed StreamedLayers `json:"streamed"` // the layers when they were streamed; zero: not known
}

// StreamedLayers is how long a few layers took in a step of one row when they were streamed from RAM.
type StreamedLayers struct {
	Seconds  float64 `json:"seconds"`
	Resident float64 `json:"resident_seconds"` // what the same layers took in VRAM
	Units    int     `json:"units"`            // units that were streamed
	Bytes    int64   `json:"bytes"`            // of all streamed units
}

// perUnit is what a streamed unit costs the compute lane in addition to its kernels: a submission of its own, recorded for each
// token. linkSeconds is how long the link takes for all units. 0 where the link is slower than the kernels: it hides the cost.
func (s *StreamedLayers) perUnit(linkSeconds float64, oneQueue bool) float64 {
	if s.Units == 0 || !oneQueue && linkSeconds >= s.Resident {
		return 0
	}
	if oneQueue {
		return max(0, s.Seconds-s.Resident-linkSeconds) / float64(s.Units)
	}
	return max(0, s.Seconds-s.Resident) / float64(s.Units)
}

// StepShape is a step's number of rows, and how many positions the last row attends to.
type StepShape struct {
	Rows    int `json:"rows"`
	Context int `json:"context"`
}

// mean is how many positions a row attends to, on average.
func (s StepShape) mean() float64 { return float64(s.Context) - float64(s.Rows-1)/2 }

// inContext accepts steps of one row, and inRows steps whose rows attend to each other alone, as axes of line.
func (s StepShape) inContext() (x float64, ok bool) { return float64(s.Context), s.Rows == 1 }
func (s StepShape) inRows() (x float64, ok bool)    { return float64(s.Rows), s.Context == s.Rows }

// Sound reports whether there is a rehearsal, and it is whole.
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

// at is the seconds that a part of a step takes at shape s, given the part's measured seconds for each of Steps.
func (r *Rehearsal) at(seconds []float64, s StepShape) float64 {
	if s.Rows == 1 {
		return max(0, line(r.Steps, seconds, StepShape.inContext, float64(s.Context)))
	}
	// A step whose rows see only each other, and then the further positions that they see.
	most := 1
	for _, m := range r.Steps {
		most = max(most, m.Rows)
	}
	known := min(s.Rows, most)
	t := line(r.Steps, seconds, StepShape.inRows, float64(known)) * float64(s.Rows) / float64(known)
	seen := StepShape{known, known}.mean()
	return max(0, t+(s.mean()-seen)*r.perPosition(seconds, s.Rows, most))
}

// perPosition is the seconds that each further position costs a step of rows. One row
// leaves a large device idle: more rows cost nothing until it is full.
func (r *Rehearsal) perPosition(seconds []float64, rows, most int) float64 {
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
		return max(0, (seconds[high]-seconds[low])/(r.Steps[high].mean()-r.Steps[low].mean()))
	}
	return max(slope(1), slope(most)*float64(rows)/float64(most))
}

// line interpolates seconds at x, between the steps that axis accepts; axis also gives each step's x. Beyond the last
// step it goes on as between the last two.
func line(steps []StepShape, seconds []float64, axis func(StepShape) (float64, bool), x float64) float64 {
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

// layer is the seconds of a layer of a class at shape s. bytes is the layer's size as in Bytes: a class that was not run
// takes as long a byte as the class nearest in size.
func (r *Rehearsal) layer(class string, bytes int64, s StepShape) float64 {
	if seconds, ok := r.Layers[class]; ok {
		return r.at(seconds, s)
	}
	best := ""
	for c, n := range r.Bytes {
		if d := abs(n-bytes) - abs(r.Bytes[best]-bytes); best == "" || d < 0 || d == 0 && c < best {
			best = c
		}
	}
	return r.at(r.Layers[best], s) * float64(bytes) / float64(max(1, r.Bytes[best]))
}

func abs(n int64) int64 { return max(n, -n) }
