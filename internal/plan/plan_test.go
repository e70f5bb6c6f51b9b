package plan_test

import (
	"errors"
	"path/filepath"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/tools/synth/synthetic"
)

func open(t *testing.T, o synthetic.Options) (*arch.Hyper, *pack.Model) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, o); err != nil {
		t.Fatal(err)
	}
	m, err := pack.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	return h, m
}

// preset opens a model of full size that holds no weights.
func preset(t *testing.T, name string) (*arch.Hyper, *pack.Model) {
	t.Helper()
	return open(t, synthetic.Options{Arch: "llama", Preset: name, Hollow: true})
}

func mustMake(t *testing.T, h *arch.Hyper, m *pack.Model, b plan.Budget) *plan.Plan {
	t.Helper()
	if b.KVType == 0 {
		b.KVType = gguf.F16
	}
	p, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBudgets holds what every plan must keep, at every budget from too little to all.
func TestBudgets(t *testing.T) {
	for _, o := range []synthetic.Options{
		{Arch: "llama", Shape: synthetic.Shape{BlockCount: 23}},
		{Arch: "qwen2", Shape: synthetic.Shape{VocabSize: 40000}}, // a head larger than any layer
		{Arch: "qwen3", Type: "f16", Shape: synthetic.Shape{BlockCount: 3}},
	} {
		t.Run(o.Arch, func(t *testing.T) {
			h, m := open(t, o)
			b := plan.Budget{DeviceBytes: 1 << 40, HostBytes: 64 << 20, ContextLength: 256, KVType: gguf.F16, Sessions: 2}
			all, err := plan.Make(h, m, b)
			if err != nil {
				t.Fatal(err)
			}
			if len(all.Ring) != 0 || all.StreamedBytes != 0 {
				t.Errorf("with room for all, %d bytes are streamed", all.StreamedBytes)
			}
			last := int64(1) << 62
			fits := 0
			for b.DeviceBytes = 1 << 16; b.DeviceBytes < all.DeviceBytes+1<<20; b.DeviceBytes += 37 << 10 {
				p, err := plan.Make(h, m, b)
				var tooSmall *plan.BudgetError
				if errors.As(err, &tooSmall) {
					if fits > 0 || tooSmall.Need <= b.DeviceBytes || tooSmall.Hint() == "" {
						t.Fatalf("budget %d: %v (needs %d), after %d that fit", b.DeviceBytes, err, tooSmall.Need, fits)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				fits++
				checkPlan(t, p, h)
				// More VRAM means less to stream, but for what the ring and larger steps took of
				// it, and for a unit: what is left over goes to those that fit, not to their best sum.
				cost := p.StreamedBytes - p.Scratch.Bytes
				for _, n := range p.Ring {
					cost -= n
				}
				if cost > last+largest(p) {
					t.Errorf("budget %d: %d bytes streamed beyond ring and scratch, with less VRAM %d", b.DeviceBytes, cost, last)
				}
				last = min(last, cost)
				if left := p.DeviceBudget - p.DeviceBytes; p.StreamedBytes > 0 && len(p.Blocks) > 0 && left > least(p)+2*granule {
					t.Errorf("budget %d: %d bytes are left over, and a unit of %d bytes is streamed", b.DeviceBytes, left, least(p))
				}
			}
			if fits < 10 {
				t.Errorf("only %d budgets fitted", fits)
			}
		})
	}
}

const granule = 64 << 10

// least and largest are the sizes of the smallest and the largest streamed unit.
func least(p *plan.Plan) int64 {
	n := int64(1) << 62
	for i := range p.Units {
		if !p.Units[i].Resident() {
			n = min(n, p.Units[i].Bytes)
		}
	}
	return n
}

func largest(p *plan.Plan) (n int64) {
	for i := range p.Units {
		if !p.Units[i].Resident() {
			n = max(n, p.Units[i].Bytes)
		}
	}
	return n
}

func checkPlan(t *testing.T, p *plan.Plan, h *arch.Hyper) {
	t.Helper()
	if p.DeviceBytes > p.DeviceBudget {
		t.Errorf("budget %d: plans %d", p.DeviceBudget, p.DeviceBytes)
	}
	ends := make([]int64, len(p.Blocks))
	var row, streamed int64
	for i := range p.Units {
		u := &p.Units[i]
		if u.Kind == pack.Head {
			if u.Row != row {
				t.Errorf("%s: begins at row %d, the one before ended at %d", u.Name, u.Row, row)
			}
			row += u.Tensors[0].Shape[0]
		}
		if !u.Resident() {
			streamed += u.Bytes
			for _, ring := range p.Ring {
				if u.Bytes > ring {
					t.Errorf("%s: %d bytes do not fit a block of %d of the ring", u.Name, u.Bytes, ring)
				}
			}
			continue
		}
		if u.Off < ends[u.Block] || u.Off%256 != 0 || u.Off+u.Bytes > p.Blocks[u.Block] {
			t.Errorf("%s: at %d of block %d (%d bytes), the one before ends at %d", u.Name, u.Off, u.Block, p.Blocks[u.Block], ends[u.Block])
		}
		ends[u.Block] = u.Off + u.Bytes
	}
	if row != int64(h.VocabSize) || streamed != p.StreamedBytes {
		t.Errorf("head pieces cover %d of %d rows; %d bytes streamed, said %d", row, h.VocabSize, streamed, p.StreamedBytes)
	}
	if p.Scratch.Bytes <= 0 || p.LogitRows < 1 || p.LogitRows > p.Chunk {
		t.Errorf("scratch %d bytes, %d logit rows of %d", p.Scratch.Bytes, p.LogitRows, p.Chunk)
	}
}

// TestSpread: resident units stand evenly between the streamed ones, and so do those
// of the disk between those of the host.
func TestSpread(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{BlockCount: 40}})
	b := plan.Budget{DeviceBytes: 1 << 40, HostBytes: 1, ContextLength: 64, KVType: gguf.F16, Chunk: 8}
	all, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []int64{3, 4, 5, 6} {
		b.DeviceBytes, b.HostBytes = all.DeviceBytes*part/7, 1
		p, err := plan.Make(h, m, b)
		if err != nil {
			t.Fatal(err)
		}
		checkEven(t, p, nil, func(u *plan.Unit) bool { return !u.Resident() })
		b.HostBytes = p.HostBytes + p.StreamedBytes/2
		if p, err = plan.Make(h, m, b); err != nil {
			t.Fatal(err)
		}
		if p.DiskBytes == 0 || p.DiskBytes == p.StreamedBytes || p.HostBytes > b.HostBytes {
			t.Errorf("%d of %d streamed bytes from disk, %d of %d bytes of RAM", p.DiskBytes, p.StreamedBytes, p.HostBytes, b.HostBytes)
		}
		checkEven(t, p, func(u *plan.Unit) bool { return !u.Resident() }, func(u *plan.Unit) bool { return u.Tier == plan.Disk })
	}
}

// checkEven demands that chosen units have the same share of the bytes of all units
// among them, at every place, but for about a layer.
func checkEven(t *testing.T, p *plan.Plan, among, chosen func(*plan.Unit) bool) {
	t.Helper()
	var all, of, layer int64
	for pass := range 2 {
		var seen, got int64
		for k := range p.Units {
			u := &p.Units[k]
			if u.Kind == pack.Norm || among != nil && !among(u) {
				continue
			}
			if u.Layer == 0 && u.Kind == pack.Layer && pass == 0 {
				layer += u.Bytes
			}
			seen += u.Bytes
			if chosen(u) {
				got += u.Bytes
			}
			want := float64(seen) * float64(of) / float64(max(1, all))
			if pass == 1 && max(float64(got)-want, want-float64(got)) > 1.5*float64(max(layer, largest(p))) {
				t.Errorf("up to %s %d of %d bytes are chosen, wanted about %.0f", u.Name, got, seen, want)
			}
		}
		all, of = seen, got
	}
	if of == 0 || of == all {
		t.Errorf("%d of %d bytes are chosen", of, all)
	}
}

func TestContextChoice(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{ContextLength: 65536}})
	roomy, err := plan.Make(h, m, plan.Budget{DeviceBytes: 1 << 40, KVType: gguf.F16})
	if err != nil || roomy.ContextLength != 65536 {
		t.Fatalf("with room for all: context %d, error %v", roomy.ContextLength, err)
	}
	tight, err := plan.Make(h, m, plan.Budget{DeviceBytes: 24 << 20, KVType: gguf.F16})
	if err != nil || tight.ContextLength >= 65536 || tight.ContextLength < 512 {
		t.Errorf("in 24 MiB: context %d, error %v", tight.ContextLength, err)
	}
	for ctx := 1; ctx <= 4096; ctx += 1 + ctx/3 {
		p, err := plan.Make(h, m, plan.Budget{DeviceBytes: 24 << 20, KVType: gguf.F16, ContextLength: ctx})
		if err != nil || p.ContextLength != ctx || p.Chunk < 1 || p.Chunk > ctx {
			t.Errorf("context %d in 24 MiB: %+v, %v", ctx, p, err)
		}
	}
	if _, err := plan.Make(h, m, plan.Budget{DeviceBytes: 24 << 20, KVType: gguf.F16, ContextLength: 65536}); err == nil {
		t.Error("a context that does not fit was accepted")
	}
}

// TestSpreads: prefix keeps the first units resident, edges the first and the last, and
// neither streams much more than even does.
func TestSpreads(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{BlockCount: 40}})
	b := plan.Budget{DeviceBytes: 1 << 40, HostBytes: 1, ContextLength: 64, KVType: gguf.F16, Chunk: 8}
	all, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	b.DeviceBytes = all.DeviceBytes / 2
	even, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spread      plan.Spread
		first, last bool // resident
	}{{plan.Prefix, true, false}, {plan.Edges, true, true}} {
		b.Spread = c.spread
		p, err := plan.Make(h, m, b)
		if err != nil {
			t.Fatal(err)
		}
		changes, before := 0, true
		for i := range p.Units {
			u := &p.Units[i]
			if u.Kind != pack.Norm && u.Resident() != before {
				changes++
				before = u.Resident()
			}
		}
		// What is left over takes a few single units besides.
		first, last := p.Units[0].Resident(), p.Units[len(p.Units)-1].Resident()
		if first != c.first || last != c.last || changes > 8 || p.StreamedBytes > even.StreamedBytes+2*largest(even) {
			t.Errorf("%v: first unit resident %t, last %t, %d changes, %d bytes streamed (even: %d)", c.spread, first, last, changes, p.StreamedBytes, even.StreamedBytes)
		}
		checkPlan(t, p, h)
	}
}

// TestStaging: a sweep's slots are what it asks for.
func TestStaging(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama"})
	p, err := plan.Make(h, m, plan.Budget{DeviceBytes: 1 << 40, HostBytes: 1, ContextLength: 64, KVType: gguf.F16, Sweep: plan.Sweep{StagingSlots: 3, StagingBytes: 20_000}})
	if err != nil || p.Staging.Slots != 3 || p.Staging.SlotBytes != 20480 || p.HostBytes != 64<<10 {
		t.Errorf("staging %+v, %d bytes of RAM, %v", p.Staging, p.HostBytes, err)
	}
}

// TestInPlace: device and host are one budget, no unit is in the host tier, and every
// extent can be read straight to where it is to be.
func TestInPlace(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{BlockCount: 20}})
	b := plan.Budget{DeviceBytes: 2 << 20, HostBytes: 3 << 20, ContextLength: 64, KVType: gguf.F16, Chunk: 8, InPlace: true}
	if !plan.Aligned(h, m) {
		t.Fatal("the model is not aligned")
	}
	p, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	checkPlan(t, p, h)
	if !p.InPlace || p.DeviceBudget != 5<<20 || p.DeviceBytes <= b.DeviceBytes || len(p.HostBlocks) != 0 || p.HostBytes != 0 || p.StreamedBytes == 0 || p.DiskBytes != p.StreamedBytes {
		t.Errorf("%d of %d bytes, host %d, %d streamed, %d from disk", p.DeviceBytes, p.DeviceBudget, p.HostBytes, p.StreamedBytes, p.DiskBytes)
	}
	for i := range p.Units {
		u := &p.Units[i]
		for _, e := range u.Extents {
			if (u.Off+e.UnitOff-e.Off)%plan.ReadAlign != 0 || e.UnitOff+e.Bytes > u.Bytes {
				t.Fatalf("%s at %d: an extent at %d on disk is at %d in it", u.Name, u.Off, e.Off, e.UnitOff)
			}
		}
	}
}

// Weights in place may take all RAM; what is the device's own stays within its budget.
func TestInPlaceContext(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{ContextLength: 65536}})
	p, err := plan.Make(h, m, plan.Budget{DeviceBytes: 8 << 20, HostBytes: 1 << 40, KVType: gguf.F16, InPlace: true})
	if err != nil {
		t.Fatal(err)
	}
	if p.KV.Bytes()+p.Scratch.Bytes > 8<<20 || p.StreamedBytes != 0 {
		t.Errorf("KV cache %d bytes, scratch %d, streamed %d", p.KV.Bytes(), p.Scratch.Bytes, p.StreamedBytes)
	}
	_, err = plan.Make(h, m, plan.Budget{DeviceBytes: 8 << 20, HostBytes: 1 << 40, KVType: gguf.F16, InPlace: true, ContextLength: 65536})
	var small *plan.BudgetError
	if !errors.As(err, &small) || small.Need <= small.Have || small.Have != 8<<20 {
		t.Errorf("a context beyond the device's own: %v", err)
	}
}
