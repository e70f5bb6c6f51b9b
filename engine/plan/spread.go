package plan

import (
	"cmp"
	"slices"
)

// evenly marks some of sizes so that in every run from the first on, about the part f
// of the bytes is marked.
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

// spreadSteps is how many shares are tried.
const spreadSteps = 512

// fewest marks as few bytes as it can so that fits accepts the rest, evenly at first;
// then it takes marks away where the rest still fits, the largest first. It returns
// nil where nothing fits.
func fewest(sizes []int64, fits func(marked []bool) bool) []bool {
	var best []bool
	least := int64(-1)
	for step := range spreadSteps + 1 {
		marked := evenly(sizes, float64(step)/spreadSteps)
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

func markedBytes(sizes []int64, marked []bool) (n int64) {
	for i, bytes := range sizes {
		if marked[i] {
			n += bytes
		}
	}
	return n
}
