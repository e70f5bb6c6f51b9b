package sample

// rank is a thing's place in an order: the larger key first, the lower id among equals.
type rank struct {
	key    float64
	weight float64
	id     int32
}

func (a rank) before(b rank) bool { return a.key > b.key || a.key == b.key && a.id < b.id }

// cut returns the last of the shortest beginning of the order whose weights reach target;
// the last of all when none does. It reorders r, which has at least one. This is quickselect
// by weight: linear, where sorting a vocabulary would take longer than a small model's step.
func cut(r []rank, target float64) rank {
	lo, hi := 0, len(r)
	for random := uint64(len(r)); hi-lo > 1; {
		// A pivot that no order of the logits makes bad again and again (Knuth's MMIX constants).
		random = random*6364136223846793005 + 1442695040888963407
		p := lo + int((random>>32)%uint64(hi-lo))
		pivot := r[p]
		r[p], r[hi-1] = r[hi-1], r[p]
		mid := lo
		var reached float64
		for i := lo; i < hi-1; i++ {
			if r[i].before(pivot) {
				reached += r[i].weight
				r[i], r[mid] = r[mid], r[i]
				mid++
			}
		}
		r[mid], r[hi-1] = r[hi-1], r[mid]
		switch {
		case mid > lo && reached >= target:
			hi = mid
		case reached+pivot.weight >= target:
			return pivot
		default:
			target -= reached + pivot.weight
			lo = mid + 1
		}
	}
	return r[min(lo, hi-1)]
}
