package pack

import (
	"fmt"
	"slices"
)

// View is a model of other units over m's files, in the order given: fewer layers, say, or a
// part of the vocabulary. It lives as long as m does; closing it does nothing.
func (m *Model) View(units []Unit) (*Model, error) {
	v := &Model{Metadata: m.Metadata, Path: m.Path, IsPack: m.IsPack, Units: units, Files: m.Files, Parts: m.Parts, Infos: m.Infos, Manifest: m.Manifest, readers: m.readers}
	if err := v.buildIndex(); err != nil {
		return nil, err
	}
	return v, nil
}

// AsLayer is a layer's unit under another layer's number, with the same bytes.
func (u *Unit) AsLayer(n int) Unit {
	c := *u
	c.Layer, c.Name = n, unitName(u.Kind, n, u.Expert)
	c.Tensors = slices.Clone(u.Tensors)
	for i := range c.Tensors {
		if _, rest, ok := splitLayer(c.Tensors[i].Name); ok {
			c.Tensors[i].Name = fmt.Sprintf("blk.%d.%s", n, rest)
		}
	}
	return c
}
