package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"leat/vk"
)

//go:generate glslc --target-env=vulkan1.2 -fshader-stage=comp -Werror -DLANES=256 -o grid.spv grid.comp

// gridSPV does phases that wait for one another; see grid.comp.
//
//go:embed grid.spv
var gridSPV []byte

// gridArgs are its push constants.
type gridArgs struct {
	Src, State                                    uint64
	Groups, First, Phases, Quads, Patience, Alone uint32
}

const (
	gridLanes    = 256
	gridPatience = 4 << 20 // looks at the barrier: a second or less
	gridArrived  = 256     // bytes into the state: the count of arrivals
	gridHead     = 3 * 256 // bytes of the state ahead of what workgroups leave
)

// grid is one measurement: phases that each read so many KiB in all, in so many workgroups.
type grid struct{ groups, kib, phases int }

func (g grid) quads() int { return g.kib * 1024 / 16 / g.groups }

// grids measures phases that wait at a barrier of the whole device in one dispatch, and the same phases as dispatches.
func (d *device) grids(ctx context.Context, o *options, out io.Writer) error {
	if len(o.gridGroups) == 0 {
		return nil
	}
	if d.dev.Physical.Limits.MaxWorkgroupInvocations < gridLanes {
		fmt.Fprintf(out, "# grid: workgroups of %d, want %d\n", d.dev.Physical.Limits.MaxWorkgroupInvocations, gridLanes)
		return nil
	}
	p, err := d.dev.NewPipeline(vk.PipelineOptions{Name: "grid", SPIRV: gridSPV, PushBytes: binary.Size(gridArgs{})})
	if err != nil {
		return err
	}
	defer p.Close()
	readback, err := d.dev.NewBuffer("grid's state", int64(gridHead+8*slices.Max(o.gridGroups)), vk.Readback)
	if err != nil {
		return err
	}
	defer readback.Close()
	for _, n := range o.gridGroups {
		for _, kib := range o.gridKiB {
			g := grid{n, kib, o.gridPhases}
			if fit := int(d.weights.Bytes / max(1, int64(g.quads()*16*g.groups))); g.phases > fit {
				g.phases = fit
			}
			if g.phases < 2 || int64(gridHead+8*g.groups) > o.room {
				fmt.Fprintf(out, "# grid of %d workgroups and %d KiB a phase: want -memory to be more, or fewer workgroups\n", g.groups, g.kib)
				continue
			}
			for _, alone := range []bool{true, false} {
				if err := d.grid(ctx, o, out, p, readback, g, alone); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// grid measures one; alone: each phase is a dispatch.
func (d *device) grid(ctx context.Context, o *options, out io.Writer, p *vk.Pipeline, readback *vk.Buffer, g grid, alone bool) error {
	name := "BenchmarkGridBarrier"
	if alone {
		name = "BenchmarkDispatchBarrier"
	}
	name += fmt.Sprintf("/groups=%d/kib=%d", g.groups, g.kib)
	for i := range warmUp + o.count {
		took, err := d.gridRun(ctx, o, p, readback, g, alone)
		if unfit := unfitError(""); errors.As(err, &unfit) {
			fmt.Fprintf(out, "# %s: %v\n", name, err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if i >= warmUp {
			fmt.Fprintf(out, "%s %d %.0f ns/op %.1f GB/s\n", name, g.phases, float64(took.Nanoseconds())/float64(g.phases),
				float64(g.quads()*16*g.groups)*float64(g.phases)/float64(took.Nanoseconds()))
		}
	}
	return nil
}

func (d *device) gridRun(ctx context.Context, o *options, p *vk.Pipeline, readback *vk.Buffer, g grid, alone bool) (took time.Duration, err error) {
	state := 3 * o.room
	if _, err := d.timed(ctx, func(cb *vk.CommandBuffer) error { cb.Fill(d.rest, state, int64(gridHead+8*g.groups), 0); return nil }); err != nil {
		return 0, err
	}
	a := gridArgs{Src: d.weights.Address, State: d.rest.Address + uint64(state), Groups: uint32(g.groups), Quads: uint32(g.quads()), Phases: uint32(g.phases), Patience: gridPatience}
	took, err = d.timed(ctx, func(cb *vk.CommandBuffer) error {
		cb.Bind(p)
		if !alone {
			vk.Push(cb, p, &a)
			cb.Dispatch(uint32(g.groups), 1, 1)
			return nil
		}
		a.Alone, a.Phases = 1, 1
		for i := range g.phases {
			a.First = uint32(i)
			vk.Push(cb, p, &a)
			cb.Dispatch(uint32(g.groups), 1, 1)
			if i+1 < g.phases {
				cb.Barrier()
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if _, err := d.timed(ctx, func(cb *vk.CommandBuffer) error {
		cb.Copy(readback, 0, d.rest, state, int64(gridHead+8*g.groups))
		cb.HostBarrier()
		return nil
	}); err != nil {
		return 0, err
	}
	return took, g.check(readback.Mapped(), alone)
}

// check demands that every workgroup came to the end of every phase: a time of less is the time of nothing.
func (g grid) check(state []byte, alone bool) error {
	word := func(i int) int { return int(binary.LittleEndian.Uint32(state[i:])) }
	if word(0) != 0 {
		return errors.New("a workgroup missed what another had left before the barrier")
	}
	if want := g.groups * (g.phases - 1); !alone && word(gridArrived) != want {
		return unfitError(fmt.Sprintf("%d arrivals at the barrier, want %d: the device does not run all workgroups at once, or ends loops", word(gridArrived), want))
	}
	last := g.phases - 1
	for i := range g.groups {
		if got := word(gridHead+4*(last%2*g.groups+i)) >> 1; got != last {
			return fmt.Errorf("workgroup %d ended in phase %d, want %d", i, got, last)
		}
	}
	return nil
}
