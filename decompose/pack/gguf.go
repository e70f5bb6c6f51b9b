package pack

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"leat/gguf"
)

// shardReader lets one shard of a GGUF be read like a file.
type shardReader struct {
	f     *gguf.File
	shard int
}

func (r shardReader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.f.ReadAt(r.shard, p, off); err != nil {
		return 0, err
	}
	return len(p), nil
}

func openGGUF(path string) (*Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, insidePack(path, err)
	}
	m, err := Of(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	for _, info := range f.Infos {
		m.Infos = append(m.Infos, []fs.FileInfo{info})
	}
	return m, nil
}

// Of is the model in a GGUF that is open; path names it in errors. Closing the model closes f.
func Of(f *gguf.File, path string) (m *Model, err error) {
	m = &Model{Metadata: f.Metadata, Path: path, Files: f.Paths, closers: []io.Closer{f}}
	for i := range max(1, len(f.Paths)) { // one from [gguf.Parse] has no path
		m.readers = append(m.readers, shardReader{f, i})
	}
	if m.Units, err = unitsOf(path, f.Tensors); err != nil {
		return nil, err
	}
	return m, m.buildIndex()
}

// layerTensors gathers one layer: what streams as a whole, and the stacked experts.
type layerTensors struct {
	whole, stacks []Tensor
}

// unitsOf groups a GGUF's tensors into units in execution order.
func unitsOf(path string, infos []gguf.TensorInfo) ([]Unit, error) {
	single := map[Kind][]Tensor{}
	layers := map[int]*layerTensors{}
	for _, ti := range infos {
		t := Tensor{Name: ti.Name, Type: ti.Type, Shape: ti.Shape, Bytes: ti.Bytes, File: ti.Shard, Off: ti.Off}
		kind, n := classify(ti.Name)
		if n < 0 {
			single[kind] = append(single[kind], t)
			continue
		}
		l := layers[n]
		if l == nil {
			l = &layerTensors{}
			layers[n] = l
		}
		if kind == Experts {
			l.stacks = append(l.stacks, t)
		} else {
			l.whole = append(l.whole, t)
		}
	}
	var units []Unit
	add := func(kind Kind, layer, expert int, tensors []Tensor) {
		if len(tensors) == 0 {
			return
		}
		u := Unit{Kind: kind, Layer: layer, Expert: expert, Name: unitName(kind, layer, expert), Tensors: tensors}
		sortTensors(u.Tensors)
		u.place()
		units = append(units, u)
	}
	add(Embed, -1, -1, single[Embed])
	add(Global, -1, -1, single[Global])
	total := 0
	for _, n := range slices.Sorted(maps.Keys(layers)) {
		l := layers[n]
		experts, odd, err := splitExperts(path, l.stacks)
		if err != nil {
			return nil, err
		}
		for _, e := range experts {
			total += len(e)
		}
		if total > maxTensors {
			return nil, formatErrorf(path, "found over %d expert slices up to layer %d, wanted at most as many", maxTensors, n)
		}
		add(Layer, n, -1, append(l.whole, odd...))
		for i, e := range experts {
			add(Experts, n, i, e)
		}
	}
	add(Norm, -1, -1, single[Norm])
	add(Head, -1, -1, single[Head])
	return units, nil
}

// splitExperts cuts a layer's stacks of weights along the outermost dimension, expert by expert. Their companions (biases,
// scales) stay whole in the layer, odd: they are small, and then the router's choice can gather all of a step's at once.
func splitExperts(path string, stacks []Tensor) (experts [][]Tensor, odd []Tensor, err error) {
	count, first := int64(0), ""
	for _, t := range stacks {
		if !isWeight(t.Name) {
			continue
		}
		if len(t.Shape) < 2 || t.Shape[0] < 1 || t.Shape[0] > maxExperts {
			return nil, nil, formatErrorf(path, "tensor %q: found shape %v, wanted 1 to %d experts in the first of two or three dimensions", t.Name, t.Shape, maxExperts)
		}
		if first != "" && t.Shape[0] != count {
			return nil, nil, formatErrorf(path, "tensor %q: found %d experts, wanted %d as in %q", t.Name, t.Shape[0], count, first)
		}
		count, first = t.Shape[0], t.Name
	}
	var cut []Tensor // the first expert's
	for _, t := range stacks {
		if !isWeight(t.Name) {
			odd = append(odd, t)
			continue
		}
		slice, ok := sliceOf(t, count)
		if !ok {
			return nil, nil, formatErrorf(path, "tensor %q: found %d bytes of %v in shape %v, wanted whole rows for each expert", t.Name, t.Bytes, t.Type, t.Shape)
		}
		cut = append(cut, slice)
	}
	if len(cut) == 0 {
		return nil, odd, nil
	}
	if count*int64(len(cut)) > maxTensors {
		return nil, nil, formatErrorf(path, "tensor %q: found %d experts of %d tensors, wanted at most %d in all", first, count, len(cut), maxTensors)
	}
	for e := range count {
		one := slices.Clone(cut)
		for i := range one {
			one[i].Off += e * one[i].Bytes
		}
		experts = append(experts, one)
	}
	return experts, odd, nil
}

// sliceOf is the first of count equal slices of a stacked tensor.
func sliceOf(t Tensor, count int64) (Tensor, bool) {
	if count < 1 || len(t.Shape) == 0 || t.Shape[0] != count || t.Bytes%count != 0 {
		return t, false
	}
	t.Bytes /= count
	t.Shape = t.Shape[1:]
	if len(t.Shape) == 0 {
		t.Shape = []int64{1}
	}
	n, err := tensorBytes(t.Type, t.Shape)
	return t, err == nil && n == t.Bytes
}

func isWeight(name string) bool {
	const suffix = ".weight"
	return len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix
}

// tensorBytes is the size of a tensor, checked for overflow.
func tensorBytes(t gguf.Type, shape []int64) (int64, error) {
	cols := int64(1)
	if n := len(shape); n > 0 {
		cols = shape[n-1]
	}
	total, err := t.RowBytes(cols)
	if err != nil {
		return 0, err
	}
	for _, d := range shape[:max(len(shape)-1, 0)] {
		if d < 0 || (d > 0 && total > (1<<62)/d) {
			return 0, fmt.Errorf("size of a tensor: found shape %v, wanted under 2⁶² bytes", shape)
		}
		total *= d
	}
	return total, nil
}
