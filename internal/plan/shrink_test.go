package plan_test

import (
	"errors"
	"leat/gguf"
	"slices"
	"testing"

	"leat/internal/plan"
	"leat/tools/synth/synthetic"
)

// TestShrink gives a model less and less VRAM while it runs, until no more can be taken:
// each plan keeps its budget, moves nothing that stays, and keeps what the host tier has.
func TestShrink(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama", Shape: synthetic.Shape{BlockCount: 40}})
	b := plan.Budget{DeviceBytes: 1 << 40, ContextLength: 64, KVType: gguf.F16, Chunk: 8, Sweep: plan.Sweep{BlockBytes: 256 << 10}}
	all, err := plan.Make(h, m, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Blocks) < 20 {
		t.Fatalf("no test: %d blocks", len(all.Blocks))
	}
	for _, c := range []struct {
		name         string
		device, host int64
	}{
		{"all resident", all.DeviceBytes, 1},
		{"all resident, RAM for half", all.DeviceBytes, all.DeviceBytes / 2},
		{"half resident, RAM for all", all.DeviceBytes / 2, 1 << 40},
		{"half resident, RAM for half", all.DeviceBytes / 2, all.DeviceBytes / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := b
			b.DeviceBytes, b.HostBytes = c.device, c.host
			p, err := plan.Make(h, m, b)
			if err != nil {
				t.Fatal(err)
			}
			steps := 0
			for budget := p.DeviceBytes; ; budget -= 300 << 10 {
				q, err := p.Shrink(budget)
				var small *plan.BudgetError
				if errors.As(err, &small) {
					if small.Need <= budget {
						t.Errorf("%d bytes were refused: %v", budget, err)
					}
					last, err := p.Shrink(small.Need)
					if err != nil || last.DeviceBytes > small.Need {
						t.Fatalf("the least that it names, %d, does not do: %v", small.Need, err)
					}
					checkShrunk(t, p, last, b.HostBytes)
					if _, err := last.Shrink(small.Need - 1); !errors.As(err, &small) {
						t.Errorf("less than the least: %v", err)
					}
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				checkShrunk(t, p, q, b.HostBytes)
				checkPlan(t, q, h)
				if q != p && q.DiskBytes+q.HostBytes > 0 && steps > 0 && slices.ContainsFunc(q.Blocks[:len(q.Blocks)-1], func(n int64) bool { return n > 0 }) {
					checkEven(t, q, nil, func(u *plan.Unit) bool { return !u.Resident() })
				}
				p = q
				steps++
			}
			if steps < 10 || p.StreamedBytes == 0 {
				t.Errorf("%d steps, at the end %d bytes streamed", steps, p.StreamedBytes)
			}
		})
	}
}

func checkShrunk(t *testing.T, p, q *plan.Plan, host int64) {
	t.Helper()
	if q.DeviceBytes > q.DeviceBudget || q.HostBytes > max(host, p.HostBytes) || q.KV.Bytes() != p.KV.Bytes() || q.Scratch.Bytes != p.Scratch.Bytes || q.Chunk != p.Chunk {
		t.Fatalf("shrunk to %d of %d bytes, %d of %d of RAM, from %+v to %+v", q.DeviceBytes, q.DeviceBudget, q.HostBytes, host, p, q)
	}
	var streamed, disk int64
	for i := range q.Units {
		a, b := &p.Units[i], &q.Units[i]
		kept := b.Tier == a.Tier && b.Block == a.Block && b.Off == a.Off
		gone := a.Tier == plan.VRAM && b.Tier != plan.VRAM && q.Blocks[a.Block] == 0
		if !kept && !gone || b.Tier == plan.VRAM && q.Blocks[b.Block] == 0 {
			t.Fatalf("%s was %v at %d of block %d, is %v at %d of block %d", a.Name, a.Tier, a.Off, a.Block, b.Tier, b.Off, b.Block)
		}
		if b.Tier != plan.VRAM {
			streamed += b.Bytes
		}
		if b.Tier == plan.Disk {
			disk += b.Bytes
		}
		if b.Tier == plan.Host && b.Off+plan.HostExtents(&b.Unit, nil) > q.HostBlocks[b.Block] {
			t.Errorf("%s ends behind its host block", b.Name)
		}
	}
	if streamed != q.StreamedBytes || disk != q.DiskBytes {
		t.Errorf("%d bytes streamed, %d from disk; said %d, %d", streamed, disk, q.StreamedBytes, q.DiskBytes)
	}
	if !slices.Equal(q.HostBlocks[:len(p.HostBlocks)], p.HostBlocks) {
		t.Errorf("host blocks %v became %v", p.HostBlocks, q.HostBlocks)
	}
	for b, bytes := range q.Blocks {
		if bytes != p.Blocks[b] && bytes != 0 {
			t.Errorf("block %d of %d bytes has %d", b, p.Blocks[b], bytes)
		}
	}
}

// Where the budget still holds, nothing changes.
func TestShrinkNothing(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama"})
	p, err := plan.Make(h, m, plan.Budget{DeviceBytes: 1 << 40, ContextLength: 64, KVType: gguf.F16})
	if err != nil {
		t.Fatal(err)
	}
	if q, err := p.Shrink(p.DeviceBytes); err != nil || q != p {
		t.Errorf("found another plan, %v", err)
	}
}
