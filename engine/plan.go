package engine

import (
	"fmt"

	"leat/internal/plan"
)

// Plan says where a model's weights live, and what it takes. Sizes are in bytes.
type Plan struct {
	ContextLength int // tokens that a session can hold
	Sessions      int // that may be open at a time
	Chunk         int // tokens of a prompt in one step, at most

	Units []Unit // in the order in which they run

	DeviceBytes   int64 // VRAM in all: resident weights, KV cache, scratch, and what streamed weights pass through
	DeviceBudget  int64 // VRAM that it may take
	HostBytes     int64 // pinned RAM
	KVBytes       int64 // of DeviceBytes, for the KV caches of all sessions
	StreamedBytes int64 // of weights, uploaded in a step; of experts, what a token needs on average if all are as likely
	DiskBytes     int64 // of StreamedBytes, read from disk

	Experts     int // in all layers together; 0: the model has none, or all of them are resident
	ExpertSlots int // how many of them VRAM holds at a time
}

// Unit is the smallest thing that is streamed: a part of a layer, some of its experts, or a part of the output matrix.
type Unit struct {
	Name  string
	Tier  Tier
	Bytes int64
}

// Tier is where a unit's bytes are between its uses.
type Tier int

// The tiers.
const (
	VRAM   Tier = iota // resident
	Host               // pinned RAM, and streamed
	Disk               // streamed
	Cached             // a layer's experts: some are in slots of VRAM, the others in RAM or on disk
)

// String names the tier.
func (t Tier) String() string { return plan.Tier(t).String() }

// Resident reports whether all of the unit stays in VRAM.
func (u *Unit) Resident() bool { return u.Tier == VRAM }

// String is one line.
func (p Plan) String() string {
	resident := 0
	for i := range p.Units {
		if p.Units[i].Resident() {
			resident++
		}
	}
	return fmt.Sprintf("%d of %d units in VRAM, which takes %s; %s streamed per step, %s of it from disk", resident, len(p.Units), mibi(p.DeviceBytes), mibi(p.StreamedBytes), mibi(p.DiskBytes))
}

// Plan says where each unit lives just now and what everything takes.
func (m *Model) Plan() Plan { return planOf(m.runner.shrinker.now.Load()) }

// planOf is the part of an internal plan that callers can use.
func planOf(in *plan.Plan) Plan {
	p := Plan{
		ContextLength: in.ContextLength, Sessions: in.Sessions, Chunk: in.Chunk,
		DeviceBytes: in.DeviceBytes, DeviceBudget: in.DeviceBudget, HostBytes: in.HostBytes, KVBytes: in.KV.Bytes(),
		StreamedBytes: in.StreamedBytes, DiskBytes: in.DiskBytes, Units: make([]Unit, len(in.Units)),
	}
	for i := range in.Units {
		u := &in.Units[i]
		p.Units[i] = Unit{u.Name, Tier(u.Tier), u.Bytes}
	}
	if in.Experts != nil {
		p.Experts, p.ExpertSlots = in.Experts.Total(), in.Experts.Slots()
	}
	return p
}
