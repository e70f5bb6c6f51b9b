package plan

import (
	"errors"
	"fmt"
	"math"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
)

// Tier is where a unit's bytes stay between uses.
type Tier int

// VRAM units are resident; Host and Disk units are streamed. A Cached unit is all experts of a layer: some are in
// slots of VRAM, see [Experts].
const (
	VRAM   Tier = iota // the bytes stay in VRAM
	Host               // the bytes stay in pinned RAM, and are uploaded for each step
	Disk               // the bytes are read from disk and uploaded for each step
	Cached             // experts share slots of VRAM, and missing ones are uploaded
)

// String is the tier's name in reports.
func (t Tier) String() string {
	return [...]string{VRAM: "VRAM", Host: "host", Disk: "disk", Cached: "cache"}[t]
}

// Budget is the memory that a model may take, and other facts about the device and the run that a plan depends on. A field of 0 means the default if
// the field's comment names one.
type Budget struct {
	DeviceBytes   int64     // VRAM for weights, KV cache and scratch together
	HostBytes     int64     // RAM for staging, host-tier units, copies of experts, and tables of tokens
	ContextLength int       // tokens that a session can hold; 0: as many as fit, at most the trained length
	Chunk         int       // most rows of a step; 0: the plan chooses
	KVType        gguf.Type // type of the KV cache, one of shaders.KVTypes; 0 is F32, which encoders have whatever this is
	Sessions      int       // number of sessions, each with a full context; 0: 1
	RingBytes     int64     // VRAM of the ring that streamed units pass through; 0: the plan chooses
	Matrices      bool      // the device has cooperative matrices: it computes products of many rows in float16
	FewRowKernels bool      // the device has kernels made for steps of at most shaders.FewRows rows
	Sweep

	// InPlace is for a device that shares its memory with the host. Disk reads go directly to memory that the device reads, where units have
	// the same layout as on disk, widened to whole blocks of the disk. Weights may take DeviceBytes and HostBytes together, but KV cache and
	// scratch must fit DeviceBytes. The model must be [Aligned]. See [Plan.InPlace].
	InPlace bool
}

// Sweep overrides choices that [Make] otherwise makes itself: how units are cut, which are resident and in how large allocations, the slots of staging memory,
// the memory for weights decoded to float16, and whether experts share slots. Benchmarks vary them to show that the choices are good.
type Sweep struct {
	Spread       Spread // how resident units are spread among streamed ones
	BlockBytes   int64  // approximate size of an allocation of resident units: [Plan.Shrink] gives back whole allocations; 0: 256 MiB
	StagingSlots int    // number of slots of staging memory; 0: 24, fewer if RAM is short
	StagingBytes int64  // most bytes of a staging slot, and so of a read; 0: 8 MiB
	PartBytes    int64  // approximate largest size of a unit, a part of a layer or some of its experts; 0: 192 MiB
	Halves       int64  // most bytes of VRAM for weights decoded to float16, two slices of a matrix, see [Scratch]; 0: depends on the VRAM budget
	Slots        bool   // experts share slots even if all of them fit
}

// Unit is a part of a layer, some or all of a layer's experts, the final norm, other weights outside the layers, or a
// piece of the head, with its tier and place. A layer is cut so that its attention can run while its FFN is still being uploaded.
type Unit struct {
	pack.Unit
	Tier  Tier  // where the unit's bytes stay between uses
	Block int   // index of the unit's block: into Plan.Blocks for tier VRAM, into Plan.HostBlocks for tier Host; no meaning for other tiers
	Off   int64 // offset in the block
	Row   int64 // for a piece of the head: index of its first row in the output matrix

	Experts      int  // number of experts that the unit holds, from Unit.Expert on; 0: the unit holds no experts
	AfterExperts bool // the unit is the part of a layer whose weights are used after the layer's experts
}

// Plan is each unit's tier and place, and the size of everything that is allocated.
type Plan struct {
	Units         []Unit   // in order of execution: parts of layers and experts, final norm, pieces of the head
	Blocks        []int64  // bytes of each block of resident units, the last one for the units outside the layers and the head; 0: there is none of these, or [Plan.Shrink] has given the block back
	Ring          []int64  // bytes of each block of the ring; empty if all units are resident
	Tables        []Table  // tables of tokens
	HostBlocks    []int64  // bytes of each block of the host tier
	KV            KV       // layout of the KV cache
	Scratch       Scratch  // layout of a step's inputs, activations and logits
	Experts       *Experts // how experts share slots; nil: each expert's unit is resident or streamed
	Staging       Staging  // pinned RAM that uploads from disk pass through; with InPlace it is not allocated, and only limits the size of a read
	InPlace       bool     // Budget.InPlace, but false if experts share slots; if true, no unit is in the host tier
	ContextLength int      // tokens that a session can hold
	Chunk         int      // most rows of a step; of an encoder, as many as ContextLength
	LogitRows     int      // most rows of a step that can get logits, or their hidden states
	Sessions      int      // number of sessions, each with a full context

	Totals

	budget Budget // the budget that Make was given, completed by defaults; Shrink lowers its DeviceBytes
}

// Totals are sums over a whole plan.
type Totals struct {
	DeviceBytes   int64 // size of all VRAM allocations
	DeviceBudget  int64 // VRAM that the plan may take
	HostBytes     int64 // RAM of staging, host tier, copies of experts, and tables of tokens
	EmbedBytes    int64 // RAM of tables of tokens
	StreamedBytes int64 // bytes uploaded in a step; for experts that share slots, the average for one token if all are used equally often
	DiskBytes     int64 // the part of StreamedBytes that is read from disk
}

// Staging is the pinned RAM that uploads from disk pass through. A slot holds one read, widened to whole blocks of the disk.
type Staging struct {
	Slots     int   // number of slots
	SlotBytes int64 // bytes of a slot
}

// granule divides the size of every allocation. Drivers round sizes up to multiples of less, so allocations take exactly the planned bytes.
const granule = 64 << 10

// maxBlock is the most bytes of an allocation that holds several units, pages or slots. Drivers' limits start at 1 GiB, and some drivers report a higher
// limit than they support.
const maxBlock = 1 << 30

// roundUp is the least multiple of to that is at least n.
func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// BudgetError says that something does not fit the budget of a tier.
type BudgetError struct {
	What       string // what does not fit
	Tier       Tier   // the tier that is too small
	Need, Have int64  // bytes that are needed, and bytes that the budget has
	Remedy     string // the option to change, for Hint
}

// Error says what does not fit, and the bytes needed and allowed.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("%s needs %s of %s, %s are allowed", e.What, mib(e.Need), tierName(e.Tier), mib(e.Have))
}

// Hint names the option to change.
func (e *BudgetError) Hint() string { return e.Remedy }

// tierName is the name of a tier's memory in an error message.
func tierName(t Tier) string {
	if t == VRAM {
		return "VRAM"
	}
	return "RAM"
}

// mib formats bytes in KiB, MiB or GiB.
func mib(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// CacheType is the type of a model's KV cache where asked is asked for: of an encoder F32, as a text's keys and values are gone after its step, so they need not be small.
func CacheType(h *arch.Hyper, asked gguf.Type) gguf.Type {
	if h.Encoder {
		return gguf.F32
	}
	return asked
}

// Make plans a model within a budget. The error is a [*BudgetError] if the budget is too small, an [*arch.UnsupportedError] if the model
// can't have its context. The least that the budget must hold is scratch, the KV cache of
// the smallest context (or of the budget's context), and either all units or the smallest ring, which holds the largest unit twice.
func Make(h *arch.Hyper, m *pack.Model, b Budget) (*Plan, error) {
	if most, why := arch.MostContext(h); most > 0 && b.ContextLength > most {
		return nil, &arch.UnsupportedError{What: "context", Have: fmt.Sprintf("of %d tokens", b.ContextLength), Want: fmt.Sprintf("at most %d, %s", most, why)}
	}
	b.KVType = CacheType(h, b.KVType)
	outer := outerUnits(h, m)
	us, err := movable(h, m, b.PartBytes, true)
	if err != nil {
		return nil, err
	}
	asked, local := b, b.DeviceBytes
	if b.InPlace {
		if !asOnDisk(us, outer) {
			return nil, fmt.Errorf("plan %s in place: tensors begin on disk where no kernel can read them", m.Path)
		}
		b.DeviceBytes, b.HostBytes = b.DeviceBytes+b.HostBytes, 0
	}
	tables, err := tables(h, m)
	if err != nil {
		return nil, err
	}
	s := &sizing{h: h, m: m, budget: b, kept: h.LogitRowValues(m.Has), outer: outer, local: local, tables: tables, grids: gridBytes(m)}
	s.budget.Sessions = max(1, b.Sessions)
	if b.BlockBytes == 0 {
		s.budget.BlockBytes = residentBlock
	}
	s.setUnits(us)
	p, err := s.plan()
	if h.Experts.Count == 0 || err == nil && p.StreamedBytes == 0 && !b.Slots {
		return p, err
	}
	// Not all fits: experts share the VRAM that everything else leaves.
	if b.InPlace { // with slots, each missing expert is copied: less than to read all experts of a layer in place
		asked.InPlace = false
		slots, slotsErr := Make(h, m, asked)
		if slotsErr == nil {
			return slots, nil
		}
		if err != nil && neededBytes(slotsErr) < neededBytes(err) {
			err = slotsErr
		}
		return p, err
	}
	if us, err = movable(h, m, b.PartBytes, false); err != nil {
		return nil, err
	}
	s.experts = classes(h, m, s.budget.BlockBytes)
	s.setUnits(us)
	return s.plan()
}

// neededBytes is [BudgetError.Need] of an error; math.MaxInt64 for other errors.
func neededBytes(err error) int64 {
	var small *BudgetError
	if !errors.As(err, &small) {
		return math.MaxInt64
	}
	return small.Need
}

// setUnits sets the units whose tier is to be chosen, and counts the pieces of the head and the bytes of the largest unit.
func (s *sizing) setUnits(us []Unit) {
	s.units, s.largest, s.heads = us, 0, 0
	for _, u := range us {
		s.largest = max(s.largest, u.Bytes)
		if u.Kind == pack.Head {
			s.heads++
		}
	}
}

// plan chooses the context's length and the chunk, and makes the plan for them.
func (s *sizing) plan() (*Plan, error) {
	ctx, chunk, err := s.choose()
	if err != nil {
		return nil, err
	}
	return s.build(ctx, chunk)
}

// Aligned reports whether kernels can read the model's tensors in place: in memory that the disk was read into. It is false too
// for a model that lacks a layer or the head.
func Aligned(h *arch.Hyper, m *pack.Model) bool {
	us, err := movable(h, m, 0, true)
	return err == nil && asOnDisk(us, outerUnits(h, m))
}

// Resident reports whether the unit stays in VRAM.
func (u *Unit) Resident() bool { return u.Tier == VRAM }
