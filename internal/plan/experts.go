package plan

import (
	"fmt"

	"leat/decompose/pack"
)

// expertParts cuts a layer's experts into units of even size, for a plan in which experts share no slots. A unit has several experts, about most bytes
// at most, or one larger expert. Each unit is streamed or resident as a whole, and computed by itself.
func expertParts(m *pack.Model, layer int, most int64) []Unit {
	experts := m.Experts(layer)
	if len(experts) == 0 {
		return nil
	}
	var bytes int64
	for i := range experts {
		bytes += experts[i].Bytes
	}
	n := min(int64(len(experts)), (bytes+most-1)/most)
	units := make([]Unit, 0, n)
	for i := range n {
		from, to := int64(len(experts))*i/n, int64(len(experts))*(i+1)/n
		name := fmt.Sprintf("layer %d experts %d to %d", layer, from, to-1)
		units = append(units, Unit{Unit: pack.Join(name, experts[from:to]), Experts: int(to - from)})
	}
	return units
}
