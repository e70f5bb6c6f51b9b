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

// Tuned are the constants and kernels that measured fastest on a device. For steps of few rows they never depend on the number of rows: a
// token's results must not depend on how many other rows share its step.
type Tuned struct {
	Kernels  string         `json:"kernels"`  // [TableKey] of the kernels that were measured
	Products []TunedProduct `json:"products"` // for products of few rows
	Outputs  []TunedOutputs `json:"outputs"`  // for fp32 products
	CMTiles  []TunedCMTile  `json:"splits"`   // for products by cooperative matrices
}

// TunedCMTile is the tile of products by cooperative matrices that measured fastest.
type TunedCMTile struct {
	HalfTile bool      `json:"half"`     // the tile is for products of up to halfTile rows of X; false: for more rows
	CMTile   CMTile    `json:"split"`    // the tile
	Measured time.Time `json:"measured"` // when it was measured
	Gain     float64   `json:"gain"`     // speed, as a multiple of that of the program's own choice
}

// TunedProduct says how steps of few rows multiply by matrices of a type with rows of K values.
type TunedProduct struct {
	Type     string    `json:"type"`     // type of the weights
	K        uint32    `json:"k"`        // values of a row
	Gated    bool      `json:"gated"`    // for products of gate and up together
	Tile     Tile      `json:"tile"`     // the tile, without zero fields; zero if Plain
	Plain    bool      `json:"plain"`    // the float32 kernels are used, which have no tile
	Measured time.Time `json:"measured"` // when it was measured
	Gain     float64   `json:"gain"`     // speed, as a multiple of that of the program's own choice
}

// TunedOutputs are the output rows and columns that a workgroup of an fp32 kernel computes, as measured fastest. The bits of the result do not depend on
// them.
type TunedOutputs struct {
	Op       string    `json:"op"`       // "mul_mat_vec" or "mul_mat"
	Type     string    `json:"type"`     // type of the weights
	Rows     uint32    `json:"rows"`     // output rows of a workgroup
	Cols     uint32    `json:"cols"`     // output columns of a workgroup of mul_mat; 0 for mul_mat_vec
	Measured time.Time `json:"measured"` // when it was measured
	Gain     float64   `json:"gain"`     // speed, as a multiple of that of the program's own choice
}

type (
	// tunedProductKey says which products a [TunedProduct] is for: weights of type t in rows of k values, gate and up together or not.
	tunedProductKey struct {
		t     gguf.Type // type of the weights
		k     uint32    // values of a row
		gated bool      // gate and up together
	}
	// tunedOutputsKey says which fp32 products [TunedOutputs] are for: the kernel, mul_mat or mul_mat_vec, and the type of its weights.
	tunedOutputsKey struct {
		op string    // "mul_mat" or "mul_mat_vec"
		t  gguf.Type // type of the weights
	}
	// tuned is [Tuned] in maps, to look up the choice for a product. A nil tuned has no entries.
	tuned struct {
		products map[tunedProductKey]TunedProduct // Tuned.Products
		fp32     map[tunedOutputsKey]TunedOutputs // Tuned.Outputs
		cmTiles  [2]CMTile                        // Tuned.CMTiles: for more than halfTile rows of X, and for up to halfTile
	}
)

// tile is the tuned tile of a mul_mat_vec in teams for weights of type typ in rows of k values; zero: none.
func (t *tuned) tile(typ gguf.Type, gated bool, k uint32) Tile {
	if t == nil {
		return Tile{}
	}
	return t.products[tunedProductKey{typ, k, gated}].Tile
}

// prefersFP32 reports whether the float32 kernel was faster than the ones for few rows, for weights of type typ in rows of k values.
func (t *tuned) prefersFP32(typ gguf.Type, k uint32) bool {
	return t != nil && t.products[tunedProductKey{typ, k, false}].Plain
}

// fp32Outputs are the tuned constants of an fp32 mul_mat or mul_mat_vec for weights of type typ; zero: none.
func (t *tuned) fp32Outputs(op string, typ gguf.Type) TunedOutputs {
	if t == nil {
		return TunedOutputs{}
	}
	return t.fp32[tunedOutputsKey{op, typ}]
}

// cmTile is the tuned tile of cooperative matrices for n rows of X; zero: none.
func (t *tuned) cmTile(n uint32) CMTile {
	switch {
	case t == nil:
		return CMTile{}
	case n <= halfTile:
		return t.cmTiles[1]
	}
	return t.cmTiles[0]
}

// OwnTile is the program's own tile, without tuning, of a mul_mat_vec in teams with a matrix of m rows of cols values.
func (k *Kernels) OwnTile(t gguf.Type, gated bool, m, cols uint32) Tile {
	glu := uint32(shaders.NoGLU)
	if gated {
		glu = shaders.GLUBytes
	}
	return k.vecTile(Tile{}, k.TeamVariant(t, cols), t, glu, m, cols)
}

// TunedError says which entry of [Tuned] is invalid or was made for other kernels.
type TunedError struct {
	What          string // names the entry, such as "the tile of Q4_K products of 4096"
	Found, Wanted any    // the entry's value, and the value that it should have
}

// Error names the entry, what it has and what it should have.
func (e *TunedError) Error() string {
	return fmt.Sprintf("use what was tuned: %s is %v, want %v", e.What, e.Found, e.Wanted)
}

// maxTuned is the most entries of a file: a model needs about ten.
const maxTuned = 1024

// Use makes k use tuned choices in place of the program's own. If one of them is invalid, or they were measured with other kernels, it changes
// nothing and returns an error. With nil it goes back to the program's own choices.
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
	found := &tuned{products: map[tunedProductKey]TunedProduct{}, fp32: map[tunedOutputsKey]TunedOutputs{}}
	for _, p := range t.Products {
		typ, err := checkTunedProduct(k, p)
		if err != nil {
			return err
		}
		found.products[tunedProductKey{typ, p.K, p.Gated}] = p
	}
	for _, o := range t.Outputs {
		typ, err := checkTunedOutputs(o)
		if err != nil {
			return err
		}
		found.fp32[tunedOutputsKey{o.Op, typ}] = o
	}
	for _, s := range t.CMTiles {
		if want := s.CMTile.fits(k.can.matrix, k.dev.Physical.Limits.MaxWorkgroupInvocations, k.can.shared); k.can.matrix == 0 || want != "" {
			return &TunedError{"a tile of cooperative matrices", s.CMTile, cmp.Or(want, "none: the device has no cooperative matrices")}
		}
		half := 0
		if s.HalfTile {
			half = 1
		}
		found.cmTiles[half] = s.CMTile
	}
	k.tuned.Store(found)
	return nil
}

// Stamp is a hash of the entries, "" if t has none.
func (t *Tuned) Stamp() string {
	if t == nil || t.Len() == 0 {
		return ""
	}
	h := fnv.New64a()
	data, _ := json.Marshal(t) // it can't fail: t has plain values only
	h.Write(data)
	return fmt.Sprintf("%016x", h.Sum64())
}

// Len counts the entries.
func (t *Tuned) Len() int { return len(t.Products) + len(t.Outputs) + len(t.CMTiles) }

// checkTunedProduct is for [Kernels.Use]: it returns the type of weights of an entry, or an error if the kernels can't run with the entry's tile for every
// number of rows of X from 1 to [shaders.FewRows].
func checkTunedProduct(k *Kernels, p TunedProduct) (gguf.Type, error) {
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
		c := check{choice: choice{op: "mul_mat_vec", variant: k.TeamVariant(typ, p.K), typed: true, typ: typ}}
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

// checkTunedOutputs is for [Kernels.Use]: it returns the type of weights of an entry, or an error if no fp32 kernel can run with the entry's constants.
func checkTunedOutputs(o TunedOutputs) (gguf.Type, error) {
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

// TableKey is a hash of the code of all kernels of this build and of the device's features.
func TableKey(dev *vk.Device) string {
	h := fnv.New64a()
	for _, k := range shaders.Kernels() {
		h.Write(k.SPIRV)
	}
	fmt.Fprint(h, dev.Features)
	return fmt.Sprintf("%016x", h.Sum64())
}

// LoadTuned reads the tuned choices of a device, which may have been measured with other kernels; nil: there are none.
func LoadTuned(folder *cache.Folder, dev *vk.Device) (*Tuned, error) {
	data, err := folder.Load(KindTunes, DeviceKey(dev.Physical))
	if err != nil || data == nil {
		return nil, err
	}
	return decodeTuned(data)
}

// decodeTuned reads a file of tuned choices.
func decodeTuned(data []byte) (*Tuned, error) {
	t := new(Tuned)
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("read what was tuned: %w", err)
	}
	return t, nil
}

// SaveTuned adds t to the tuned choices of a device in the cache. Choices in the file that were measured with other kernels are dropped.
func SaveTuned(folder *cache.Folder, dev *vk.Device, t *Tuned) error {
	return folder.Update(KindTunes, DeviceKey(dev.Physical), func(data []byte) ([]byte, error) {
		all := *t
		if old, err := decodeTuned(data); err == nil && old.Kernels == t.Kernels && old.Len() < maxTuned/2 {
			all.Products, all.Outputs, all.CMTiles = append(old.Products, t.Products...), append(old.Outputs, t.Outputs...), append(old.CMTiles, t.CMTiles...)
		}
		all.Products = keepNewest(all.Products, func(p TunedProduct) any { return [3]any{p.Type, p.K, p.Gated} })
		all.Outputs = keepNewest(all.Outputs, func(o TunedOutputs) any { return [2]any{o.Op, o.Type} })
		all.CMTiles = keepNewest(all.CMTiles, func(s TunedCMTile) any { return s.HalfTile })
		return json.Marshal(&all)
	})
}

// keepNewest keeps one element for each key: the last in the list, at the place of the first.
func keepNewest[T any](list []T, key func(T) any) []T {
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
