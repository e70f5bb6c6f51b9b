package plan

import (
	"cmp"
	"slices"
)

// Spread is a way to choose resident units among streamed ones.
type Spread int

// Every unit runs once a step, so none deserves VRAM more than another: what counts is that each
// transfer has compute to hide behind. Only Even sees to that; the others are there to be measured.
const (
	Even   Spread = iota // resident units stand evenly between the streamed ones
	Prefix               // the first layers are resident
	Edges                // the first and the last layers are resident
)

func (s Spread) String() string {
	return [...]string{Even: "even", Prefix: "prefix", Edges: "edges"}[s]
}

// mark chooses the units to stream, given the sizes of all units: about the share f of the bytes.
func (s Spread) mark(sizes []int64, f float64) []bool {
	if s == Even {
		return evenly(sizes, f)
	}
	var all, seen float64
	for _, n := range sizes {
		all += float64(n)
	}
	from, to := all*(1-f), all // of the bytes that are marked
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

// evenly marks units of the given sizes so that among the first n units, for every n, about the share f of the bytes is marked.
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

// spreadSteps is how many shares of streamed bytes fewest tries.
const spreadSteps = 512

// fewest marks units of the given sizes, as few bytes as it can, so that fits accepts the choice. It begins with a choice spread
// as how says, and then takes away marks, of the largest units first, while the choice still fits. It returns nil where nothing fits.
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
