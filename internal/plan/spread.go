package plan

import (
	"cmp"
	"slices"
)

// Spread says which units are resident if some are streamed.
type Spread int

// Each unit runs once in a step, so VRAM is worth the same for all. But the computation of resident units should hide each
// upload, which Even achieves. Prefix and Edges exist to be compared with it.
const (
	Even   Spread = iota // resident units are spread evenly among the streamed ones
	Prefix               // the first layers are resident
	Edges                // the first and the last layers are resident
)

// String is the spread's name in options and reports.
func (s Spread) String() string {
	return [...]string{Even: "even", Prefix: "prefix", Edges: "edges"}[s]
}

// mark marks the units to stream, about the share f of all bytes. sizes has the bytes of each unit.
func (s Spread) mark(sizes []int64, f float64) []bool {
	if s == Even {
		return evenly(sizes, f)
	}
	var all, seen float64
	for _, n := range sizes {
		all += float64(n)
	}
	from, to := all*(1-f), all // the marked range of all bytes
	if s == Edges {
		from, to = all*(1-f)/2, all*(1+f)/2
	}
	marked := make([]bool, len(sizes))
	for i, n := range sizes {
		mid := seen + float64(n)/2
		marked[i] = f > 0 && from <= mid && mid <= to
		seen += float64(n)
	}
	return marked
}

// evenly marks units of the given sizes so that for every n, about the share f of the bytes of the first n units is marked.
func evenly(sizes []int64, f float64) []bool {
	marked := make([]bool, len(sizes))
	seen, got := 0.0, 0.0
	for i, n := range sizes {
		seen += float64(n)
		if f*seen-got >= float64(n)/2 {
			marked[i] = true
			got += float64(n)
		}
	}
	return marked
}

// spreadSteps: [fewest] tries shares of streamed bytes from 0 to 1, each larger than the one before by 1/spreadSteps.
const spreadSteps = 512

// fewest marks as few bytes of units as it can so that fits accepts the marks. sizes has the bytes of each unit. It begins with marks spread
// as how says, and then removes marks, from the largest units first, if fits accepts the rest. It returns nil if fits accepts no marks.
func fewest(sizes []int64, how Spread, fits func(marked []bool) bool) []bool {
	var best []bool
	least := int64(-1)
	for step := range spreadSteps + 1 {
		marked := how.mark(sizes, float64(step)/spreadSteps)
		if n := markedBytes(sizes, marked); (least < 0 || n < least) && fits(marked) {
			best, least = marked, n
		}
	}
	if best == nil {
		return nil
	}
	order := make([]int, 0, len(sizes))
	for i := range sizes {
		if best[i] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	for _, i := range order {
		best[i] = false
		best[i] = !fits(best)
	}
	return best
}

// markedBytes is the sum of the marked sizes.
func markedBytes(sizes []int64, marked []bool) (n int64) {
	for i, bytes := range sizes {
		if marked[i] {
			n += bytes
		}
	}
	return n
}
