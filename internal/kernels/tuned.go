package kernels

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"leat/gguf"
	"leat/internal/kernels/cache"
	"leat/shaders"
	"leat/vk"
)

// Tuned are choices that measured fastest on a device. They never depend on the rows of X of a step of few rows: a token's
// results must not depend on how many others share its step.
type Tuned struct {
	Kernels  string         `json:"kernels"` // what they hold for: [TableKey]
	Products []TunedProduct `json:"products"`
	Outputs  []TunedOutputs `json:"outputs"`
	Splits   []TunedSplit   `json:"splits"`
}

// TunedSplit is the split of mul_mat_cm for many rows of X, or for up to half a tile.
type TunedSplit struct {
	Half     bool      `json:"half"`
	Split    Split     `json:"split"`
	Measured time.Time `json:"measured"`
	Gain     float64   `json:"gain"`
}

// TunedProduct is how a step of few rows multiplies by matrices of a type whose rows have K values.
type TunedProduct struct {
	Type     string    `json:"type"`
	K        uint32    `json:"k"`
	Gated    bool      `json:"gated"`
	Tile     Tile      `json:"tile"`  // all of it
	Plain    bool      `json:"plain"` // in float32, as steps of many rows
	Measured time.Time `json:"measured"`
	Gain     float64   `json:"gain"` // what was measured: times as fast as what the program chooses by itself
}

// TunedOutputs are the constants of an fp32 kernel: who computes an output, never how.
type TunedOutputs struct {
	Op       string    `json:"op"` // "mul_mat_vec", "mul_mat"
	Type     string    `json:"type"`
	Rows     uint32    `json:"rows"`
	Cols     uint32    `json:"cols"` // of mul_mat
	Measured time.Time `json:"measured"`
	Gain     float64   `json:"gain"`
}

type (
	productKey struct {
		t     gguf.Type
		k     uint32
		gated bool
	}
	outputsKey struct {
		op string
		t  gguf.Type
	}
	// tuned is Tuned, found by key. A nil one has nothing.
	tuned struct {
		products map[productKey]TunedProduct
		fp32     map[outputsKey]TunedOutputs
		splits   [2]Split // of more than half a tile, of half a tile
	}
)

func (t *tuned) tile(typ gguf.Type, gated bool, k uint32) Tile {
	if t == nil {
		return Tile{}
	}
	return t.products[productKey{typ, k, gated}].Tile
}

func (t *tuned) plain(typ gguf.Type, k uint32) bool {
	return t != nil && t.products[productKey{typ, k, false}].Plain
}

func (t *tuned) outputs(op string, typ gguf.Type) TunedOutputs {
	if t == nil {
		return TunedOutputs{}
	}
	return t.fp32[outputsKey{op, typ}]
}

func (t *tuned) split(n uint32) Split {
	switch {
	case t == nil:
		return Split{}
	case n <= halfTile:
		return t.splits[1]
	}
	return t.splits[0]
}

// OwnTile is the tile that the program chooses by itself for an output of m rows.
func (k *Kernels) OwnTile(t gguf.Type, gated bool, m, cols uint32) Tile {
	glu := uint32(shaders.NoGLU)
	if gated {
		glu = shaders.GLUBytes
	}
	return k.vecTile(Tile{}, k.Team(t, cols), t, glu, m, cols)
}

// TunedError says why something tuned is not used.
type TunedError struct {
	What          string // "the tile of Q4_K products of 4096"
	Found, Wanted any
}

func (e *TunedError) Error() string {
	return fmt.Sprintf("use what was tuned: %s is %v, want %v", e.What, e.Found, e.Wanted)
}

// maxTuned bounds a file's entries: models have some ten.
const maxTuned = 1024

// Use takes tuned choices in place of the program's own, all or, with an error, none; nil for the program's own.
func (k *Kernels) Use(t *Tuned) error {
	if t == nil {
		k.tuned.Store(nil)
		return nil
	}
	if key := TableKey(k.dev); t.Kernels != key {
		return &TunedError{"what it was measured with", t.Kernels, key}
	}
	if n := t.Len(); n > maxTuned {
		return &TunedError{"the number of its entries", n, fmt.Sprintf("at most %d", maxTuned)}
	}
	found := &tuned{products: map[productKey]TunedProduct{}, fp32: map[outputsKey]TunedOutputs{}}
	for _, p := range t.Products {
		typ, err := k.checkProduct(p)
		if err != nil {
			return err
		}
		found.products[productKey{typ, p.K, p.Gated}] = p
	}
	for _, o := range t.Outputs {
		typ, err := checkOutputs(o)
		if err != nil {
			return err
		}
		found.fp32[outputsKey{o.Op, typ}] = o
	}
	for _, s := range t.Splits {
		if want := s.Split.fits(k.matrix, k.dev.Physical.Limits.MaxWorkgroupInvocations, k.shared); k.matrix == 0 || want != "" {
			return &TunedError{"a split", s.Split, cmp.Or(want, "none: the device has no cooperative matrices")}
		}
		half := 0
		if s.Half {
			half = 1
		}
		found.splits[half] = s.Split
	}
	k.tuned.Store(found)
	return nil
}

// Stamp tells what is tuned from what was tuned before; "" for nothing.
func (t *Tuned) Stamp() string {
	if t == nil || t.Len() == 0 {
		return ""
	}
	h := fnv.New64a()
	data, _ := json.Marshal(t) // of plain values
	h.Write(data)
	return fmt.Sprintf("%016x", h.Sum64())
}

// Len counts the choices.
func (t *Tuned) Len() int { return len(t.Products) + len(t.Outputs) + len(t.Splits) }

// checkProduct accepts what can be recorded for any number of few rows.
func (k *Kernels) checkProduct(p TunedProduct) (gguf.Type, error) {
	typ, err := gguf.ParseType(p.Type)
	if err != nil || teamVariants[typ] == "" {
		return typ, &TunedError{"the type of a product", p.Type, "one that has kernels for few rows"}
	}
	if p.Plain {
		if p.Gated || p.Tile != (Tile{}) {
			return typ, &TunedError{fmt.Sprintf("a product of %v in float32", typ), p, "not gated, and without a tile"}
		}
		return typ, nil
	}
	glus := []uint32{shaders.NoGLU}
	if p.Gated {
		glus = []uint32{shaders.GLUFloats, shaders.GLUBytes}
	}
	for _, glu := range glus {
		c := check{choice: choice{op: "mul_mat_vec", variant: k.Team(typ, p.K), typed: true, typ: typ}}
		t := p.Tile
		for _, n := range []uint32{t.Rows, t.Team, t.Unroll, t.Lanes} {
			if n == 0 || n > maxTileLanes {
				return typ, &TunedError{fmt.Sprintf("the tile of %v products of %d", typ, p.K), t, "four numbers above 0"}
			}
		}
		if c.shape(t, glu, shaders.FewRows, k.dev.Physical.Limits.MaxWorkgroupInvocations); c.err != nil {
			return typ, c.err
		}
	}
	return typ, nil
}

func checkOutputs(o TunedOutputs) (gguf.Type, error) {
	typ, err := gguf.ParseType(o.Type)
	if err == nil {
		_, err = shaders.Find("mul_mat", shaders.FP32, typ)
	}
	cols := o.Cols
	if o.Op == "mul_mat_vec" {
		cols = shaders.FewRows
	}
	what := fmt.Sprintf("the tile of %s %s", o.Op, o.Type)
	switch {
	case err != nil:
		return typ, err
	case o.Op != "mul_mat_vec" && o.Op != "mul_mat":
		return typ, &TunedError{"a kernel", o.Op, "mul_mat_vec or mul_mat"}
	case o.Op == "mul_mat_vec" && o.Cols != 0:
		return typ, &TunedError{what, o.Cols, "no columns: the step has as many"}
	case o.Rows == 0 || cols == 0 || o.Rows > shaders.MaxTile || cols > shaders.MaxTile || o.Rows*cols > shaders.MaxTile:
		return typ, &TunedError{what, fmt.Sprintf("%d x %d", o.Rows, cols), fmt.Sprintf("1 to %d outputs", shaders.MaxTile)}
	}
	return typ, nil
}

// TableKey names the kernels of this build and the features of a device that they use.
func TableKey(dev *vk.Device) string {
	h := fnv.New64a()
	for _, k := range shaders.Kernels() {
		h.Write(k.SPIRV)
	}
	fmt.Fprint(h, dev.Features)
	return fmt.Sprintf("%016x", h.Sum64())
}

// LoadTuned returns what was tuned for a device, with whatever kernels; nil where nothing was.
func LoadTuned(folder *cache.Folder, dev *vk.Device) (*Tuned, error) {
	data, err := folder.Load(KindTunes, DeviceKey(dev.Physical))
	if err != nil || data == nil {
		return nil, err
	}
	return decodeTuned(data)
}

func decodeTuned(data []byte) (*Tuned, error) {
	t := new(Tuned)
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("read what was tuned: %w", err)
	}
	return t, nil
}

// SaveTuned adds to what was tuned for a device, or replaces it where that was with other kernels.
func SaveTuned(folder *cache.Folder, dev *vk.Device, t *Tuned) error {
	return folder.Update(KindTunes, DeviceKey(dev.Physical), func(data []byte) ([]byte, error) {
		all := *t
		if old, err := decodeTuned(data); err == nil && old.Kernels == t.Kernels && old.Len() < maxTuned/2 {
			all.Products, all.Outputs, all.Splits = append(old.Products, t.Products...), append(old.Outputs, t.Outputs...), append(old.Splits, t.Splits...)
		}
		all.Products = newest(all.Products, func(p TunedProduct) any { return [3]any{p.Type, p.K, p.Gated} })
		all.Outputs = newest(all.Outputs, func(o TunedOutputs) any { return [2]any{o.Op, o.Type} })
		all.Splits = newest(all.Splits, func(s TunedSplit) any { return s.Half })
		return json.Marshal(&all)
	})
}

// newest keeps the last one of each key.
func newest[T any](list []T, key func(T) any) []T {
	at := map[any]int{}
	var kept []T
	for _, x := range list {
		if i, ok := at[key(x)]; ok {
			kept[i] = x
			continue
		}
		at[key(x)] = len(kept)
		kept = append(kept, x)
	}
	return kept
}
