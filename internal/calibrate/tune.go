package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
	"leat/vk"
)

// Gain is what tuning found for one choice: what leat chooses by itself, and what is faster.
type Gain struct {
	What        string  // "Q4_K products of 4096 values, gated"
	Own         string  // what the program chooses by itself
	Best        string  // what is faster; "": nothing is
	OwnSeconds  float64 // of all such products of a step
	BestSeconds float64 // the same as OwnSeconds where nothing is faster
}

// A choice must win by so much: less is noise.
const (
	leastGain  = 1.03
	quickTime  = 8 * time.Millisecond // of work, for a candidate
	quickTimes = 4
)

// tuner tries candidates on one device.
type tuner struct {
	*Kernels
	tuned kernels.Tuned
	gains []Gain
	now   time.Time
	step  func()
}

// choice is a tuned choice under trial: one of them, or none.
type choice struct {
	product *kernels.TunedProduct
	outputs *kernels.TunedOutputs
	split   *kernels.TunedCMTile
}

// Tune measures for each kind of products which constants of the kernels are fastest on dev: what is worth keeping, and
// what was found for each. progress is told how many of all are done.
func Tune(ctx context.Context, dev *vk.Device, products []Product, log *slog.Logger, progress func(done, total int)) (*kernels.Tuned, []Gain, error) {
	_, read := Sizes(dev.Physical)
	k, err := NewKernels(ctx, dev, read, kernels.Options{Logger: log}) // candidates are tested, not what is common to them
	if err != nil {
		return nil, nil, err
	}
	defer k.Close()
	t := &tuner{Kernels: k, now: time.Now().UTC().Truncate(time.Second)}
	t.tuned.Kernels = kernels.TableKey(dev)
	few, matrices := kernels.HasFewRowKernels(dev.Physical, dev.Features), kernels.PromptsUseMatrices(dev.Physical, dev.Features)
	kinds := kindsOf(products)
	types := typesOf(products)
	total, done := 0, 0
	t.step = func() { done++; progress(done, total) }
	var parts []func(context.Context) error
	if few {
		for _, kind := range kinds {
			parts = append(parts, func(ctx context.Context) error { return t.product(ctx, kind) })
		}
	}
	for _, typ := range types {
		if !few {
			parts = append(parts, func(ctx context.Context) error { return t.outputs(ctx, "mul_mat_vec", typ, largest(products, typ)) })
		}
		if !matrices {
			parts = append(parts, func(ctx context.Context) error { return t.outputs(ctx, "mul_mat", typ, largest(products, typ)) })
		}
	}
	if matrices && len(products) > 0 {
		for _, half := range []bool{true, false} {
			parts = append(parts, func(ctx context.Context) error { return t.split(ctx, half, largest(products, types[0])) })
		}
	}
	total = len(parts)
	progress(0, total)
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return nil, nil, fmt.Errorf("tune %s: %w", dev.Physical.Name, err)
		}
		t.step()
	}
	return &t.tuned, t.gains, nil
}

// kindsOf groups products for which the same choice is made.
func kindsOf(products []Product) [][]Product {
	var kinds [][]Product
	for _, p := range products {
		i := slices.IndexFunc(kinds, func(k []Product) bool { return k[0].Type == p.Type && k[0].K == p.K && k[0].Gated == p.Gated })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, nil)
		}
		kinds[i] = append(kinds[i], p)
	}
	return kinds
}

func typesOf(products []Product) (types []gguf.Type) {
	for _, p := range products {
		if !slices.Contains(types, p.Type) {
			types = append(types, p.Type)
		}
	}
	return types
}

func largest(products []Product, t gguf.Type) Product {
	return slices.MaxFunc(products, func(a, b Product) int {
		size := func(p Product) uint64 {
			if p.Type != t {
				return 0
			}
			return uint64(p.M[0]) * uint64(p.K)
		}
		return cmp.Compare(size(a), size(b))
	})
}

// product tunes the tile of products that share type, length and kind.
func (t *tuner) product(ctx context.Context, kind []Product) error {
	p := kind[0]
	if !t.takes(p) {
		return nil // such rows go by the plain kernels
	}
	m := slices.MaxFunc(kind, func(a, b Product) int { return cmp.Compare(a.M[0], b.M[0]) }).M[0]
	own := t.kernels.OwnTile(p.Type, p.Gated, m, p.K)
	measure := func(tile kernels.Tile, plain bool) (float64, error) {
		if tile == (kernels.Tile{}) && !plain {
			return t.seconds(ctx, choice{}, kind, 1)
		}
		return t.seconds(ctx, choice{product: &kernels.TunedProduct{Type: p.Type.String(), K: p.K, Gated: p.Gated, Tile: tile, Plain: plain}}, kind, 1)
	}
	best, err := search(own, func(tile kernels.Tile) (float64, error) { return measure(tile, false) })
	if err != nil {
		return err
	}
	was, is, err := compare(func() (float64, error) { return measure(kernels.Tile{}, false) }, func() (float64, error) { return measure(best, false) })
	if err != nil {
		return err
	}
	g := Gain{What: fmt.Sprintf("%v products of %d values", p.Type, p.K), Own: tileText(own), OwnSeconds: was, BestSeconds: was}
	if p.Gated {
		g.What += ", gated"
	}
	keep := kernels.TunedProduct{Type: p.Type.String(), K: p.K, Gated: p.Gated, Measured: t.now}
	switch {
	case best != own && was > leastGain*is && t.proven(p, best):
		g.Best, g.BestSeconds, keep.Tile = tileText(best), is, best
	}
	if !p.Gated {
		plain, err := measure(kernels.Tile{}, true)
		if err != nil {
			return err
		}
		if g.BestSeconds > leastGain*plain {
			g.Best, g.BestSeconds, keep.Tile, keep.Plain = "float32", plain, kernels.Tile{}, true
		}
	}
	if t.gains = append(t.gains, g); g.Best != "" {
		keep.Gain = g.OwnSeconds / g.BestSeconds
		t.tuned.Products = append(t.tuned.Products, keep)
	}
	return nil
}

func tileText(t kernels.Tile) string {
	return fmt.Sprintf("%d rows, teams of %d of %d, %d at once", t.Rows, t.Team, t.Lanes, t.Unroll)
}

// search changes one constant after another, from the program's own choice on, and keeps what is faster.
func search(own kernels.Tile, measure func(kernels.Tile) (float64, error)) (best kernels.Tile, err error) {
	best = own
	least, err := measure(own)
	if err != nil {
		return best, err
	}
	for _, c := range []struct {
		of     func(*kernels.Tile) *uint32
		values []uint32
	}{
		{func(t *kernels.Tile) *uint32 { return &t.Team }, []uint32{8, 16, 32, 64, 128}},
		{func(t *kernels.Tile) *uint32 { return &t.Rows }, []uint32{1, 2, 4, 8}},
		{func(t *kernels.Tile) *uint32 { return &t.Unroll }, []uint32{1, 2, 4}},
		{func(t *kernels.Tile) *uint32 { return &t.Lanes }, []uint32{32, 64, 128, 256}},
	} {
		from := best
		for _, v := range c.values {
			try := from
			*c.of(&try) = v
			if try.Lanes < try.Team {
				try.Lanes = try.Team
			}
			if try == from {
				continue
			}
			took, err := measure(try)
			if err != nil {
				return best, err
			}
			if took > 0 && took < least {
				best, least = try, took
			}
		}
	}
	return best, nil
}

// compare measures two in turn, so that a moment's load doesn't tell on one of them alone.
func compare(a, b func() (float64, error)) (was, is float64, err error) {
	for range 3 {
		for _, x := range []struct {
			least   *float64
			measure func() (float64, error)
		}{{&was, a}, {&is, b}} {
			took, err := x.measure()
			if err != nil {
				return 0, 0, err
			}
			if *x.least == 0 || took < *x.least {
				*x.least = took
			}
		}
	}
	return was, is, nil
}

// proven runs a tile at every number of columns against the reference.
func (t *tuner) proven(p Product, tile kernels.Tile) bool {
	variant := t.kernels.TeamVariant(p.Type, p.K)
	row, err := shaders.Find("mul_mat_vec", variant, p.Type)
	if err != nil {
		return false
	}
	glus := []uint32{shaders.NoGLU}
	if p.Gated {
		glus = []uint32{shaders.GLUFloats, shaders.GLUBytes}
	}
	for _, glu := range glus {
		for _, cols := range []uint32{1, 2, 4, 8} {
			if selftest.Prove(t.kernels, kernels.Variant{Row: row, Cols: cols, Tile: tile, GLU: glu}) != nil {
				return false
			}
		}
	}
	return true
}

// outputs tunes how many outputs a workgroup of an fp32 kernel makes: their bits stay.
func (t *tuner) outputs(ctx context.Context, op string, typ gguf.Type, p Product) error {
	p.M[1], p.M[2], p.Gated = 0, 0, false
	n := uint32(1)
	shapes := [][2]uint32{{1, 0}, {2, 0}, {4, 0}, {8, 0}}
	own := [2]uint32{4, 0}
	if op == "mul_mat" {
		n, own = 64, [2]uint32{8, 8}
		shapes = [][2]uint32{{4, 8}, {8, 8}, {4, 16}, {16, 4}, {2, 16}, {2, 32}}
		p.M[0] = min(p.M[0], 512)
	}
	measure := func(shape [2]uint32) (float64, error) {
		return t.seconds(ctx, choice{outputs: &kernels.TunedOutputs{Op: op, Type: typ.String(), Rows: shape[0], Cols: shape[1]}}, []Product{p}, n)
	}
	best, least := own, 0.0
	for _, s := range shapes {
		took, err := measure(s)
		if err != nil {
			return err
		}
		if least == 0 || took < least {
			best, least = s, took
		}
	}
	was, is, err := compare(func() (float64, error) { return measure(own) }, func() (float64, error) { return measure(best) })
	if err != nil {
		return err
	}
	g := Gain{What: fmt.Sprintf("%s of %v in float32", op, typ), Own: outputsText(own), OwnSeconds: was, BestSeconds: was}
	if best != own && was > leastGain*is {
		g.Best, g.BestSeconds = outputsText(best), is
		t.tuned.Outputs = append(t.tuned.Outputs, kernels.TunedOutputs{Op: op, Type: typ.String(), Rows: best[0], Cols: best[1], Measured: t.now, Gain: was / is})
	}
	t.gains = append(t.gains, g)
	return nil
}

func outputsText(s [2]uint32) string {
	if s[1] == 0 {
		return fmt.Sprintf("%d rows", s[0])
	}
	return fmt.Sprintf("%d x %d outputs", s[0], s[1])
}
