package step

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/tools/testdata"
)

// However a plan cuts the layers of a model, each operation is in one unit, which holds its weights, and in the order of the layer; experts are in all units that
// hold some.
func TestDealtOperations(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(testdata.Dir(t), "hf", "*.gguf"))
	if err != nil || len(paths) < 50 {
		t.Fatalf("found %d models, error %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := pack.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			h, err := arch.Read(m)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err) // so far
			}
			if err != nil {
				t.Fatal(err)
			}
			const lots = 1 << 30
			for _, parts := range []int64{0, 1, 1 << 12} {
				sizes := plan.Budget{HostBytes: lots, ContextLength: 64, Chunk: 16, Sweep: plan.Sweep{PartBytes: parts}}
				resident, streamed, slots := sizes, sizes, sizes
				resident.DeviceBytes, slots.DeviceBytes, slots.Slots = lots, lots, true
				streamed.DeviceBytes = least(t, h, m, sizes)
				for name, b := range map[string]plan.Budget{"resident": resident, "streamed": streamed, "slots": slots} {
					p, err := plan.Make(h, m, b)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if slots := p.Experts != nil; name == "streamed" && p.StreamedBytes == 0 || name == "resident" && p.StreamedBytes > 0 || name == "slots" && slots != (h.Experts.Count > 0) {
						t.Errorf("%s: streams %d bytes, experts in slots: %t", name, p.StreamedBytes, slots)
					}
					checkDealt(t, h, m, p.Units)
				}
			}
		})
	}
}

// least is the least VRAM that a plan needs.
func least(t *testing.T, h *arch.Hyper, m *pack.Model, b plan.Budget) int64 {
	t.Helper()
	b.DeviceBytes = 1
	_, err := plan.Make(h, m, b)
	var small *plan.BudgetError
	if !errors.As(err, &small) {
		t.Fatalf("1 byte of VRAM: error %v", err)
	}
	return small.Need
}

// checkDealt checks the operations that unitOps assigns to units.
func checkDealt(t *testing.T, h *arch.Hyper, m *pack.Model, units []plan.Unit) {
	t.Helper()
	dealt, err := unitOps(units, func(l int) []arch.Op { return h.Layer(l, m.Has) })
	if err != nil {
		t.Error(err)
		return
	}
	of := make([][]arch.Kind, h.BlockCount) // kinds of the operations of each layer, in the order of the units
	for i, ops := range dealt {
		for _, o := range ops {
			if o.Kind != arch.Experts && !hasTensors(&units[i], o.Weights()) {
				t.Errorf("unit %s: lacks one of %q", units[i].Name, o.Weights())
			}
			kinds := &of[units[i].Layer]
			if n := len(*kinds); o.Kind != arch.Experts || (*kinds)[n-1] != arch.Experts { // experts of a layer are in several units, one after the other
				*kinds = append(*kinds, o.Kind)
			}
		}
	}
	for l := range of {
		var want []arch.Kind
		for _, o := range arch.Fuse(h.Layer(l, m.Has)) {
			want = append(want, o.Kind)
		}
		if !slices.Equal(of[l], want) {
			t.Errorf("layer %d: found the operations %v, wanted %v", l, of[l], want)
		}
	}
}
