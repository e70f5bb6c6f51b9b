package arch

// MostContext is the largest context, in tokens, that leat can run the model with, and the reason as a noun phrase for a message; 0: there is no such bound.
func MostContext(h *Hyper) (n int, why string) {
	switch {
	case h.Positions > 0:
		return h.Positions, "the positions that the model has weights for"
	case h.Indexer.Top > 0:
		return h.Indexer.Top, "the positions that its attention sees without a choice by its indexer, which leat does not compute"
	}
	return 0, ""
}

// LongestContext is the default length of contexts in tokens: the trained length, or [MostContext] if that is less. What memory allows may be less still.
func LongestContext(h *Hyper) int {
	if most, _ := MostContext(h); most > 0 {
		return min(most, h.ContextLength)
	}
	return h.ContextLength
}
