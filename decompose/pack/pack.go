package pack

import (
	"fmt"
	"slices"

	"leat/gguf"
)

const (
	TensorAlign = 256  // bytes; each tensor of a unit starts on a multiple of it
	FileAlign   = 4096 // bytes; files and expert records are padded to it, for direct reads

	maxDims    = 4       // as ggml has it
	maxExperts = 1 << 12 // in one layer; the kernels hold fewer
	maxTensors = 1 << 18 // over all units, each expert's slices counted: some 300 bytes of memory each; a 94-layer model of 512 experts has 144 thousand
	maxLayer   = 999_999 // highest layer number
)

// Kind says what a unit is in the model.
type Kind string

const (
	Embed   Kind = "embed"      // token_embd.weight
	Global  Kind = "global"     // whatever belongs to no layer and to none of the others
	Layer   Kind = "layer"      // blk.N.*, less the experts
	Experts Kind = "experts"    // one expert of blk.N.ffn_*_exps.*
	Norm    Kind = "final_norm" // output_norm.*
	Head    Kind = "lm_head"    // output.weight; absent when tied to the embedding

	Metadata Kind = "metadata" // metadata.gguf; in a manifest only, never a unit
)

// Tensor is one tensor of a unit. Of an expert's slice, Shape and Bytes are the slice's and Name is
// the stacked tensor's.
type Tensor struct {
	Name    string // as in the GGUF
	Type    gguf.Type
	Shape   []int64 // outermost first
	Bytes   int64
	UnitOff int64 // offset in the unit as it rests in memory; multiple of TensorAlign
	File    int   // index into Model.Files
	Off     int64 // offset in that file
	Expert  int   // of a slice in a unit that [Join] made: whose it is
}

// Extent is one contiguous read. Where it spans several tensors, the bytes between them are what the
// file holds there.
type Extent struct {
	File    int // index into Model.Files
	Off     int64
	UnitOff int64
	Bytes   int64
}

// Unit is the smallest thing streamed.
type Unit struct {
	Kind          Kind
	Layer, Expert int    // -1 where not meaningful
	Name          string // "layer 17", "layer 3 expert 5", "lm_head"
	Tensors       []Tensor
	Extents       []Extent // the reads that fill it, by rising UnitOff
	Bytes         int64    // size in memory: end of the last tensor, padded to TensorAlign
}

// Tensor finds a tensor by its GGUF name.
func (u *Unit) Tensor(name string) (*Tensor, bool) {
	for i := range u.Tensors {
		if u.Tensors[i].Name == name {
			return &u.Tensors[i], true
		}
	}
	return nil, false
}

// Rows returns the unit that holds rows [r0, r0+n) of u's one 2-D tensor, at UnitOff 0; rows past the
// end are left out. Of any other unit it returns one without tensors.
func (u *Unit) Rows(r0, n int64) Unit {
	part := Unit{Kind: u.Kind, Layer: u.Layer, Expert: u.Expert}
	if len(u.Tensors) != 1 || len(u.Tensors[0].Shape) != 2 || u.Tensors[0].Shape[0] <= 0 {
		part.Name = u.Name + " (no rows)"
		return part
	}
	t := u.Tensors[0]
	rows := t.Shape[0]
	rowBytes := t.Bytes / rows
	r0 = min(max(r0, 0), rows)
	n = min(max(n, 0), rows-r0)
	t.Shape = []int64{n, t.Shape[1]}
	t.Bytes = n * rowBytes
	t.Off += r0 * rowBytes
	part.Name = fmt.Sprintf("%s rows %d to %d", u.Name, r0, r0+n)
	part.Tensors = []Tensor{t}
	part.place()
	return part
}

// Part returns the unit that holds tensors [from, to) of u only, the first at UnitOff 0.
func (u *Unit) Part(name string, from, to int) Unit {
	part := Unit{Kind: u.Kind, Layer: u.Layer, Expert: u.Expert, Name: name}
	part.Tensors = slices.Clone(u.Tensors[from:to])
	part.place()
	return part
}

// place puts the tensors at their offsets, in order, and works out the unit's size and reads.
func (u *Unit) place() {
	end := int64(0)
	for i := range u.Tensors {
		u.Tensors[i].UnitOff = end
		end = alignUp(end+u.Tensors[i].Bytes, TensorAlign)
	}
	u.Bytes = end
	u.Extents = extents(u.Tensors)
}

// extents merges neighbours that lie as far apart on disk as in memory.
func extents(tensors []Tensor) []Extent {
	var out []Extent
	for _, t := range tensors {
		if t.Bytes == 0 {
			continue
		}
		if n := len(out); n > 0 {
			e := &out[n-1]
			if e.File == t.File && t.Off >= e.Off+e.Bytes && t.Off-e.Off == t.UnitOff-e.UnitOff {
				e.Bytes = t.Off + t.Bytes - e.Off
				continue
			}
		}
		out = append(out, Extent{File: t.File, Off: t.Off, UnitOff: t.UnitOff, Bytes: t.Bytes})
	}
	return slices.Clip(out)
}

// unitName is how people call it.
func unitName(k Kind, layer, expert int) string {
	switch k {
	case Layer:
		return fmt.Sprintf("layer %d", layer)
	case Experts:
		return fmt.Sprintf("layer %d expert %d", layer, expert)
	}
	return string(k)
}

func alignUp(n, align int64) int64 { return (n + align - 1) / align * align }
