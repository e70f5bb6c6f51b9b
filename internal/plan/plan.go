package plan

import (
	"errors"
	"fmt"
	"math"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
)

// Tier is where a unit's bytes rest between uses.
type Tier int

// VRAM units are resident; Host and Disk units are streamed. A Cached unit is a layer's experts, of which some are in
// slots of VRAM, see [Experts].
const (
	VRAM Tier = iota
	Host
	Disk
	Cached
)

func (t Tier) String() string {
	return [...]string{VRAM: "VRAM", Host: "host", Disk: "disk", Cached: "cache"}[t]
}

// Budget is what a model may spend. Zero values ask for defaults where one is named.
type Budget struct {
	DeviceBytes   int64     // VRAM for weights, KV cache and scratch together
	HostBytes     int64     // pinned RAM for staging and host-tier units
	ContextLength int       // tokens a session can hold; 0: what fits, at most the trained length
	Chunk         int       // most rows of a step; 0: chosen
	KVType        gguf.Type // of the KV cache, one of shaders.KVTypes; 0 is F32
	Sessions      int       // sessions with a full context each; 0: 1
	RingBytes     int64     // VRAM that streamed units pass through; 0: chosen
	Matrices      bool      // the device multiplies cooperative matrices: products of many rows are computed in half-precision floats
	Few           bool      // the device has kernels made for steps of at most shaders.FewRows rows
	Sweep

	// InPlace is for a device that has its memory in common with the host: units lie in memory as
	// on disk, up to whole blocks, so that the disk is read into where the device reads
	// them. DeviceBytes and HostBytes are then one budget for weights, but KV cache and
	// scratch stay within DeviceBytes. It wants a model that is [Aligned]. See [Plan.InPlace].
	InPlace bool
}

// Sweep overrides choices that [Make] otherwise makes itself. Benchmarks vary them to show that the choices are good.
type Sweep struct {
	Spread       Spread // which units are resident
	BlockBytes   int64  // of resident units in one allocation, about: what [Plan.Shrink] gives back at least; 0: 256 MiB
	StagingSlots int    // 0: 24, fewer where RAM is short
	StagingBytes int64  // of a slot: what is read at a time at most; 0: 8 MiB
	PartBytes    int64  // of a part of a layer, or of some of its experts, at most; 0: 192 MiB
	Halves       int64  // memory to decode weights into, two slices at a time, where products are computed in halves; 0: by the VRAM
	Slots        bool   // experts share slots even where all of them fit
}

// Unit is one unit with its verdict: a part of a layer, some of its experts, the final norm, or a
// piece of the head. A layer is cut so that its attention runs while its FFN still comes.
type Unit struct {
	pack.Unit
	Tier  Tier
	Block int   // VRAM: index into Plan.Blocks; host: into Plan.HostBlocks
	Off   int64 // offset in that block
	Row   int64 // head pieces: first row of the output matrix

	Experts int // how many experts of its layer it holds, from Unit.Expert on; 0: it is something else
}

// Plan is the verdict on every unit and the size of everything that is allocated.
type Plan struct {
	Units         []Unit  // execution order: parts of layers, final norm, head pieces
	Blocks        []int64 // bytes of each resident block; 0: given back by [Shrink]
	Ring          []int64 // bytes of each block of the ring; none when all is resident
	HostBlocks    []int64 // bytes of each block of the host tier
	KV            KV
	Scratch       Scratch
	Experts       *Experts // how experts share VRAM; nil: their units are as all others
	Staging       Staging  // in place: none of it is allocated, it says how much is read at a time
	InPlace       bool     // as the budget asked, but for experts that share slots; no unit is then in the host tier
	ContextLength int
	Chunk         int // most rows of a step
	LogitRows     int // most rows of a step that may want logits
	Sessions      int

	Totals

	made Budget // the budget that Make was given, as completed by defaults; Shrink lowers its DeviceBytes
}

// Totals are sums over all of a plan.
type Totals struct {
	DeviceBytes   int64 // all VRAM allocations
	DeviceBudget  int64
	HostBytes     int64 // staging, host tier, token embeddings
	EmbedBytes    int64 // token embeddings kept in RAM; 0: rows are read as they are needed
	StreamedBytes int64 // uploaded per step; of experts that share VRAM, what a token needs on average if all are as likely
	DiskBytes     int64 // the part of StreamedBytes that is read from disk
}

// Staging is the persistent pinned memory that uploads pass through. A slot holds what
// is read at a time, widened to whole blocks of the disk.
type Staging struct {
	Slots     int
	SlotBytes int64
}

// Allocations are rounded up to this, so that a driver's own rounding changes nothing.
const granule = 64 << 10

// maxBlock bounds one allocation: drivers' limits start at 1 GiB and some lie.
const maxBlock = 1 << 30

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// BudgetError says what did not fit into which tier.
type BudgetError struct {
	What       string
	Tier       Tier
	Need, Have int64 // bytes
	Remedy     string
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("%s needs %s of %s, %s are allowed", e.What, mib(e.Need), tierName(e.Tier), mib(e.Have))
}

// Hint names the option to change.
func (e *BudgetError) Hint() string { return e.Remedy }

// tierName is a tier's memory in an error message.
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

// Make plans a model within a budget. The error is a [*BudgetError] when the budget
// cannot hold two of the largest unit beside scratch and the smallest context.
func Make(h *arch.Hyper, m *pack.Model, b Budget) (*Plan, error) {
	found, ok := m.Unit(pack.Norm, -1)
	if !ok {
		return nil, fmt.Errorf("plan %s: the final norm is missing", m.Path)
	}
	norm := *found
	us, err := movable(h, m, b.PartBytes)
	if err != nil {
		return nil, err
	}
	asked, local := b, b.DeviceBytes
	if b.InPlace {
		if !asOnDisk(us, &norm) {
			return nil, fmt.Errorf("plan %s in place: tensors begin on disk where no kernel can read them", m.Path)
		}
		b.DeviceBytes, b.HostBytes = b.DeviceBytes+b.HostBytes, 0
	}
	embd, _, ok := m.Tensor(arch.TokenEmbd)
	if !ok {
		return nil, fmt.Errorf("plan %s: tensor %q is missing", m.Path, arch.TokenEmbd)
	}
	s := &sizing{h: h, m: m, b: b, kept: h.Kept(m.Has), norm: norm, local: local, embdRow: embd.Bytes / int64(h.VocabSize), embd: embd.Bytes}
	s.b.Sessions = max(1, b.Sessions)
	if b.BlockBytes == 0 {
		s.b.BlockBytes = residentBlock
	}
	s.setUnits(us)
	p, err := s.make()
	if h.Experts.Count == 0 || err == nil && p.StreamedBytes == 0 && !b.Slots {
		return p, err
	}
	// Not all fits: experts share what the rest of the layers leaves.
	if b.InPlace { // a copy of an expert costs less than a layer's others, which in place would have to come with it
		asked.InPlace = false
		slots, slotsErr := Make(h, m, asked)
		if slotsErr == nil {
			return slots, nil
		}
		if err != nil && needs(slotsErr) < needs(err) {
			err = slotsErr
		}
		return p, err
	}
	if us, err = dense(h, m, b.PartBytes); err != nil {
		return nil, err
	}
	s.experts = classes(h, m, s.b.BlockBytes)
	s.setUnits(us)
	return s.make()
}

// needs is how many bytes a [BudgetError] asks for; math.MaxInt64 for other errors.
func needs(err error) int64 {
	var small *BudgetError
	if !errors.As(err, &small) {
		return math.MaxInt64
	}
	return small.Need
}

// setUnits sets the units whose tier is to be chosen.
func (s *sizing) setUnits(us []Unit) {
	s.units, s.largest, s.heads = us, 0, 0
	for _, u := range us {
		s.largest = max(s.largest, u.Bytes)
		if u.Kind == pack.Head {
			s.heads++
		}
	}
}

// make chooses context and chunk, and plans with these.
func (s *sizing) make() (*Plan, error) {
	ctx, chunk, err := s.choose()
	if err != nil {
		return nil, err
	}
	return s.build(ctx, chunk)
}

// Aligned reports whether the model's tensors begin on disk where a kernel can read them
// in place.
func Aligned(h *arch.Hyper, m *pack.Model) bool {
	us, err := movable(h, m, 0)
	norm, ok := m.Unit(pack.Norm, -1)
	if err != nil || !ok {
		return false
	}
	unit := *norm
	return asOnDisk(us, &unit)
}

// Resident reports whether the unit stays in VRAM.
func (u *Unit) Resident() bool { return u.Tier == VRAM }
