package plan_test

import (
	"errors"
	"path/filepath"
	"testing"

	"leat/decompose/pack"
	"leat/engine/arch"
	"leat/engine/plan"
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

// TestBudgets holds what every plan must keep, at every budget from too little to all.
func TestBudgets(t *testing.T) {
	for _, o := range []synthetic.Options{
		{Arch: "llama", Shape: synthetic.Shape{BlockCount: 23}},
		{Arch: "qwen2", Shape: synthetic.Shape{VocabSize: 40000}}, // a head larger than any layer
		{Arch: "qwen3", Type: "f16", Shape: synthetic.Shape{BlockCount: 3}},
	} {
		t.Run(o.Arch, func(t *testing.T) {
			h, m := open(t, o)
			b := plan.Budget{DeviceBytes: 1 << 40, HostBytes: 64 << 20, ContextLength: 256, KVElement: 2, Sessions: 2}
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
				if p.StreamedBytes > last && p.Chunk == all.Chunk {
					t.Errorf("budget %d: %d bytes streamed, more than with less VRAM (%d)", b.DeviceBytes, p.StreamedBytes, last)
				}
				if p.Chunk == all.Chunk {
					last = p.StreamedBytes
				}
			}
			if fits < 10 {
				t.Errorf("only %d budgets fitted", fits)
			}
		})
	}
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
	b := plan.Budget{DeviceBytes: 1 << 40, HostBytes: 1, ContextLength: 64, KVElement: 2, Chunk: 8}
	all, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	b.DeviceBytes = all.DeviceBytes * 2 / 3
	p, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	checkEven(t, p, func(u *plan.Unit) bool { return !u.Resident() })
	b.HostBytes = p.HostBytes + p.StreamedBytes/2
	if p, err = plan.Make(h, m, b); err != nil {
		t.Fatal(err)
	}
	if p.DiskBytes == 0 || p.DiskBytes == p.StreamedBytes || p.HostBytes > b.HostBytes {
		t.Errorf("%d of %d streamed bytes from disk, %d of %d bytes of RAM", p.DiskBytes, p.StreamedBytes, p.HostBytes, b.HostBytes)
	}
}

// checkEven demands that the gaps between chosen units differ by one at most.
func checkEven(t *testing.T, p *plan.Plan, chosen func(*plan.Unit) bool) {
	t.Helper()
	last, least, most := -1, 1<<30, 0
	i := 0
	for k := range p.Units {
		if p.Units[k].Kind == pack.Norm {
			continue
		}
		if chosen(&p.Units[k]) {
			if last >= 0 {
				least, most = min(least, i-last), max(most, i-last)
			}
			last = i
		}
		i++
	}
	if last < 0 || most-least > 1 {
		t.Errorf("gaps between the chosen units are %d to %d", least, most)
	}
}

func TestContextChoice(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{ContextLength: 65536}})
	roomy, err := plan.Make(h, m, plan.Budget{DeviceBytes: 1 << 40, KVElement: 2})
	if err != nil || roomy.ContextLength != 65536 {
		t.Fatalf("with room for all: context %d, error %v", roomy.ContextLength, err)
	}
	tight, err := plan.Make(h, m, plan.Budget{DeviceBytes: 24 << 20, KVElement: 2})
	if err != nil || tight.ContextLength >= 65536 || tight.ContextLength < 512 {
		t.Errorf("in 24 MiB: context %d, error %v", tight.ContextLength, err)
	}
	if _, err := plan.Make(h, m, plan.Budget{DeviceBytes: 24 << 20, KVElement: 2, ContextLength: 65536}); err == nil {
		t.Error("a context that does not fit was accepted")
	}
}
