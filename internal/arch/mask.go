package arch

import "math"

// Mask says which positions of its sequence a row's attention sees, its own included. The zero Mask sees all up to the row's own. At most one field is set.
type Mask struct {
	Window int  // only the last Window positions up to the row's own; 0: no such bound
	Chunk  int  // only those of the row's chunk up to the row's own: the sequence is cut into chunks of Chunk positions; 0: no such bound
	Around int  // the row's own position and Around positions on each side of it; 0: no such bound
	All    bool // all positions of the sequence, also those after the row's own
}

// MaxMasks is the most masks that a model has.
const MaxMasks = 3

// Seen is the first and the last position that the row at position pos sees, the last one included. end is the last position of its sequence.
func (m *Mask) Seen(pos, end int) (first, last int) {
	switch {
	case m.Window > 0:
		return max(0, pos-m.Window+1), pos
	case m.Chunk > 0:
		return pos / m.Chunk * m.Chunk, pos
	case m.Around > 0:
		return max(0, pos-m.Around), min(end, pos+m.Around)
	case m.All:
		return 0, end
	}
	return 0, pos
}

// Width is the most positions that a row sees; 0: there is no bound but the sequence.
func (m *Mask) Width() int {
	if m.Around > 0 {
		return 2*m.Around + 1
	}
	return max(m.Window, m.Chunk)
}

// Ahead reports whether rows see positions after their own.
func (m *Mask) Ahead() bool { return m.All || m.Around > 0 }

// Windowed reports whether the attention of layer l has a window, on one side or both. A Chunk is not a window.
func (h *Hyper) Windowed(l int) bool {
	m := &h.Masks[h.Layers[l].Mask]
	return m.Window > 0 || m.Around > 0
}

// readWindow reads attention.sliding_window, and gives a window of that length to the layers that windowed marks. 0 is no window. Without the key, the length
// is fallback; a fallback below 0 makes that an error.
func readWindow(k *keys, h *Hyper, fallback int, windowed []bool) {
	const pattern = "attention.sliding_window_pattern"
	if _, _, found := k.lookUp("attention.sliding_window", nil); !found && k.read[k.arch+"."+pattern] {
		if _, _, patterned := k.lookUp(pattern, nil); patterned {
			k.fail("key %q is missing, and the file has %s", k.arch+".attention.sliding_window", pattern)
		}
	}
	if n := k.int("attention.sliding_window", fallback); n > 0 {
		h.addMask(Mask{Window: n}, windowed)
	}
}

// addMask adds a mask to Masks, and gives it to the layers that masked marks.
func (h *Hyper) addMask(m Mask, masked []bool) {
	h.Masks = append(h.Masks, m)
	for l := range h.Layers {
		if masked[l] {
			h.Layers[l].Mask = len(h.Masks) - 1
		}
	}
}

// Slopes returns ALiBi's slope of each head, shape (H): the score of a position at distance d is lowered by slope*d (Press et al. 2021). It is nil if the model does
// not use ALiBi. If H is a power of 2, head i has the slope 2^(-ALiBi*(i+1)/H). Otherwise the first heads have the slopes of the next smaller power of 2, and the others
// every second slope of the next larger one.
func (h *Hyper) Slopes() []float32 {
	if h.ALiBi == 0 {
		return nil
	}
	slopes := make([]float32, h.Layers[0].HeadCount)
	whole := 1 // the largest power of 2 up to the number of heads
	for 2*whole <= len(slopes) {
		whole *= 2
	}
	for i := range slopes {
		power := float64(i+1) / float64(whole)
		if i >= whole {
			power = float64(2*(i-whole)+1) / float64(2*whole)
		}
		slopes[i] = float32(math.Exp2(-h.ALiBi * power))
	}
	return slopes
}
