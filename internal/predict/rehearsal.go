package predict

import "slices"

// Rehearsal is how long layers of the model took where the engine ran a few of them, all
// in VRAM. It includes what no rate tells: today's kernels, the waits between them, the
// host's part. Package engine makes it.
type Rehearsal struct {
	Steps    []StepShape          `json:"steps"`  // that were run
	Layers   map[string][]float64 `json:"layers"` // seconds of a layer by its class, for each of Steps
	Bytes    map[string]int64     `json:"bytes"`  // of a layer's weights, of one expert of it, by its class
	Overhead []float64            `json:"rest"`   // seconds of a step beside its layers and its head, for each of Steps
	Head     float64              `json:"head"`   // seconds of the head and its norm, for one row
	Chunk    int                  `json:"chunk"`  // rows that were asked for; Steps may end before, where a device is slow

	HostTrip        float64 `json:"trip"`  // seconds that one row of a layer whose experts share slots, all resident, takes longer because the host is asked; 0: not known
	ConditionalTrip float64 `json:"ahead"` // the same where the layer runs without asking the host; 0: it can't, or it is not known

	Streamed StreamedLayers `json:"streamed"` // the same layers, one row, where they are streamed; its zero: not known
}

// StreamedLayers is what a few layers took that were streamed from RAM.
type StreamedLayers struct {
	Seconds  float64 `json:"seconds"`
	Resident float64 `json:"resident_seconds"` // all in VRAM
	Units    int     `json:"units"`            // that were streamed
	Bytes    int64   `json:"bytes"`            // of these
}

// perUnit is the compute lane's seconds of a streamed unit beside its kernels: a submission of its own, recorded for each
// token. linkSeconds is what all units take on the link. Where the link is slower than the kernels it hides that, here as in the model.
func (s *StreamedLayers) perUnit(linkSeconds float64, oneQueue bool) float64 {
	if s.Units == 0 || !oneQueue && linkSeconds >= s.Resident {
		return 0
	}
	if oneQueue {
		return max(0, s.Seconds-s.Resident-linkSeconds) / float64(s.Units)
	}
	return max(0, s.Seconds-s.Resident) / float64(s.Units)
}

// StepShape is a step's number of rows, and how many positions the last of them sees.
type StepShape struct {
	Rows    int `json:"rows"`
	Context int `json:"context"`
}

// mean is how many positions a row sees, on average.
func (s StepShape) mean() float64 { return float64(s.Context) - float64(s.Rows-1)/2 }

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

// at is the seconds of a part of a step of shape s, from those that were measured of it for each of Steps.
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

// line is the value at x of the polyline through the steps that lie on an axis, in order of x;
// past its end its last piece goes on.
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

// layer is the seconds of a layer of a class with that many bytes, as Bytes counts them. A
// class that was not run takes as long a byte as the class nearest in size.
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
