package plan

import (
	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/shaders"
)

// Region is a part of the scratch buffer.
type Region struct {
	Off   int64 // offset in the buffer
	Bytes int64 // size; 0: the buffer has no such part
}

// Scratch is the layout of the buffer in VRAM that holds a step's inputs, activations and logits. N is the plan's Chunk.
type Scratch struct {
	Inputs

	Values      [arch.NumValues]Region // activations, (N, width), of 4 bytes each, see [arch.Value]
	LogitValues [arch.NumValues]Region // activations after [arch.KeepLogitRows]: (LogitRows, width) for values that it keeps, the same as in Values for the others
	Head        Region                 // (LogitRows, D) float32: X, normalised for the head: the hidden states
	Logits      Region                 // (LogitRows, V) float32; empty: the model is an encoder
	Argmax      Region                 // (LogitRows) uint32: the id with the greatest logit; empty: the model is an encoder
	Tiles       Region                 // tiles of (row, expert) pairs, grouped by expert; empty: the model has no experts
	Halves      Region                 // both sides of products of many rows as float16: the rows, then slices of decoded weights; empty: such products read Q8 or float32
	WeightBytes int64                  // size of the part of Halves for decoded weights: two slices of a matrix, one being decoded while the other is multiplied
	Q8          Region                 // two inputs of products of few rows (also of many rows if Halves is empty), quantised to int8; empty: no product reads int8
	Parts       Region                 // partial results of split attention of few rows, and of argmax
	Counters    Region                 // uint32: how many partial results of attention or argmax are complete
	Bytes       int64                  // size of the buffer
}

// Inputs are the regions that the host fills for every step.
type Inputs struct {
	IDs         Region // (N) uint32 0…N-1: rows of Embd
	Pos         Region // (N) uint32: each row's position
	Seq         Region // (N) uint32: each row's sequence, an index into Pages and States
	Pages       Region // (sessions, pages of a session) uint64: addresses of the KV cache's pages
	States      Region // (sessions, 2) uint64: addresses of a sequence's state before the step and after it
	LogitIDs    Region // (LogitRows) uint32: indices of the step's rows whose logits are needed
	LogitSeq    Region // (LogitRows) uint32: Seq of the rows in LogitIDs
	RowScales   Region // (N) float32: each row's factor, see [arch.RowScale]; empty: the model has none
	LogitScales Region // (LogitRows) float32: RowScales of the rows in LogitIDs
	Slopes      Region // (H) float32: by which the scores of attention's heads fall off; empty: they don't
	Grids       Region // grids of the types of weights, the same for every step; empty: no type has a grid
	ExpertTable Region // (L, 3, E) uint64: addresses of gate, up and down of the experts that the layer's next products compute; 0: the expert is left out

	// Residents is for layers that run without asking the host: (L, shaders.ResidentsHead + 3 E) uint64, a table of all experts in VRAM, in which the
	// device looks up a layer's chosen experts; then (L) uint32, a flag for each layer that says whether its dispatches run.
	Residents Region

	Embd      [arch.MaxTables]Region // (N) rows of each of the model's tables of tokens, in the file's type
	CosSin    [arch.MaxRopes]Region  // (N, Dr/2, 2) float32: cosines and sines of each of the model's ropes
	Seen      [arch.MaxMasks]Region  // (N, 2) uint32: the first and the last position that each row sees by each of the model's masks
	LogitSeen [arch.MaxMasks]Region  // (LogitRows, 2) uint32: Seen of the rows in LogitIDs
}

// add gives r the next bytes of the buffer, a multiple of 256.
func (s *Scratch) add(r *Region, bytes int64) {
	*r = Region{Off: s.Bytes, Bytes: roundUp(bytes, 256)}
	s.Bytes += r.Bytes
}

// scratch lays out the scratch of steps of up to chunk rows whose sessions hold ctx tokens.
func (s *sizing) scratch(ctx, chunk int) Scratch {
	var c Scratch
	h, rows := s.h, int64(logitRows(s.h, chunk))
	s.addInputs(&c, ctx, chunk)
	for v := range c.Values {
		c.add(&c.Values[v], 4*int64(chunk)*int64(h.MaxWidth(arch.Value(v))))
	}
	c.LogitValues = c.Values
	for _, v := range s.kept {
		c.add(&c.LogitValues[v], 4*rows*int64(h.MaxWidth(v)))
	}
	c.add(&c.Head, 4*rows*int64(h.EmbeddingLength))
	if !h.Encoder {
		c.add(&c.Logits, 4*rows*int64(h.VocabSize))
		c.add(&c.Argmax, 4*rows)
	}
	if experts := uint32(h.Experts.Count); experts > 0 {
		c.add(&c.Tiles, shaders.TileBytes*int64(shaders.ExpertTiles(uint32(chunk*h.Experts.Used), experts, shaders.ExpertCols)))
	}
	if c.WeightBytes = s.halves(); c.WeightBytes > 0 {
		pairs := uint32(chunk * h.Experts.Used)
		c.add(&c.Halves, max(shaders.ScratchBytes(uint32(chunk), uint32(h.LongestRow()), c.WeightBytes), shaders.ScratchBytes(pairs, uint32(h.Experts.FeedForwardLength), 0)))
	}
	s.addFewRows(&c, chunk)
	c.Bytes = roundUp(c.Bytes, granule)
	return c
}

// addInputs adds the inputs of steps of up to chunk rows whose sessions hold ctx tokens.
func (s *sizing) addInputs(c *Scratch, ctx, chunk int) {
	n, rows, sessions := int64(chunk), int64(logitRows(s.h, chunk)), int64(s.budget.Sessions)
	c.add(&c.IDs, 4*n)
	c.add(&c.Pos, 4*n)
	c.add(&c.Seq, 4*n)
	c.add(&c.Pages, 8*int64(kvPages(ctx))*sessions)
	c.add(&c.States, 16*sessions)
	for i := range s.h.Ropes {
		c.add(&c.CosSin[i], 4*n*int64(s.h.Ropes[i].Dim))
	}
	for i := range s.tables {
		c.add(&c.Embd[i], n*s.tables[i].RowBytes)
	}
	c.add(&c.LogitIDs, 4*rows)
	c.add(&c.LogitSeq, 4*rows)
	if s.h.RowScale.Factor != 0 {
		c.add(&c.RowScales, 4*n)
		c.add(&c.LogitScales, 4*rows)
	}
	for i := range s.h.Masks {
		c.add(&c.Seen[i], 8*n)
		c.add(&c.LogitSeen[i], 8*rows)
	}
	c.add(&c.Slopes, 4*int64(len(s.h.Slopes())))
	c.add(&c.Grids, s.grids)
	layers, experts := int64(s.h.BlockCount), int64(s.h.Experts.Count)
	c.add(&c.ExpertTable, 8*layers*3*experts)
	if experts > 0 {
		c.add(&c.Residents, layers*(8*(shaders.ResidentsHead+3*experts)+4))
	}
}

// gridBytes is the memory for the grids of the types of a model's weights.
func gridBytes(m *pack.Model) int64 {
	for i := range m.Units {
		for _, t := range m.Units[i].Tensors {
			if shaders.HasGrid(t.Type) {
				return shaders.GridBytes
			}
		}
	}
	return 0
}

// addFewRows adds the partial results and the counters of argmax. If the device has kernels for few rows, it also adds the int8 inputs of products, and
// makes the other two large enough for split attention.
func (s *sizing) addFewRows(c *Scratch, chunk int) {
	h, logits := s.h, logitRows(s.h, chunk)
	var parts, counters int64
	if !h.Encoder {
		parts, counters = shaders.ArgmaxPartBytes(uint32(logits), uint32(h.VocabSize)), 4*int64(logits)
	}
	if s.budget.FewRowKernels {
		rows := uint32(shaders.FewRows)
		if c.WeightBytes == 0 { // products of many rows read int8, too
			rows = max(rows, uint32(chunk))
		}
		pairs := rows * uint32(h.Experts.Used)
		c.add(&c.Q8, 2*max(shaders.Q8Size(rows, uint32(h.LongestRow())), shaders.Q8Size(pairs, uint32(h.Experts.FeedForwardLength))))
		for l := range h.Layers {
			a := &h.Layers[l]
			parts = max(parts, shaders.PartBytes(shaders.FewRows, uint32(a.HeadCount), shaders.MaxParts, uint32(a.ValueLength)))
			counters = max(counters, shaders.CounterBytes(shaders.FewRows, uint32(a.HeadCount)))
		}
	}
	c.add(&c.Parts, parts)
	c.add(&c.Counters, counters)
}

// halves is the size of the part of [Scratch.Halves] for decoded weights: two slices of a matrix, so that one is decoded while the product with the other
// runs. It is 0 if the device does not compute products in float16.
func (s *sizing) halves() int64 {
	if !s.budget.Matrices {
		return 0
	}
	most := 2 * shaders.TilesBytes(uint32(s.h.LongestRow()), uint32(s.h.EmbeddingLength)) // the largest matrix twice
	if s.budget.Halves > 0 {
		return min(most, s.budget.Halves)
	}
	return min(most, max(leastHalves, min(mostHalves, s.budget.DeviceBytes/halvesFraction)))
}

const (
	leastHalves, mostHalves = 16 << 20, 512 << 20 // bytes for two slices of decoded weights; the product with one slice should keep the device busy
	halvesFraction          = 24                  // both slices take at most a 24th of the VRAM budget, but not less than leastHalves
)

// logitRows is how many rows of a step of up to chunk rows can get logits. All their logits together take at most 32 MiB, but one row always can. All rows of an
// encoder can get their hidden states.
func logitRows(h *arch.Hyper, chunk int) int {
	if h.Encoder {
		return chunk
	}
	return min(chunk, max(1, 32<<20/(4*h.VocabSize)))
}
