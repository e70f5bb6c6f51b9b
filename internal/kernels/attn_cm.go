package kernels

import (
	"cmp"
	"slices"

	"leat/gguf"
	"leat/shaders"
)

// heads is what flash_attn_cm is made for.
type heads struct {
	subgroup int
	RunSplit
	key, val uint32
	options  uint32
}

// RunSplit is how a workgroup of flash_attn_cm works; 0: the program's own choice.
type RunSplit struct {
	Subgroups uint32 // each takes 16 rows
	Stages    uint32 // 2: positions are stored beside those that are computed with
}

// SharedBytes is the shared memory of a workgroup, for heads of so many values.
func (s *RunSplit) SharedBytes(key, val uint32) int64 {
	const step = 32 // positions
	k, v, rows := key/8+1, val/8+1, 16*s.Subgroups
	return 16 * int64(max(s.Stages*step*(k+v)+rows*(step/4+1), rows*k, rows*17))
}

// options are the OPTIONS of flash_attn_cm.
func options(a *shaders.FlashAttnArgs) (o uint32) {
	if a.Window > 0 {
		o |= shaders.WithWindow
	}
	if a.SoftCap > 0 {
		o |= shaders.WithSoftCap
	}
	if a.Sinks != 0 {
		o |= shaders.WithSinks
	}
	return o
}

// ownRun is what the program chooses by itself where there is the shared memory for it, else it is one stage.
var ownRun = RunSplit{Subgroups: 4, Stages: 2}

func (h *heads) constants(m constants) {
	m.given("LANES", h.Subgroups*uint32(h.subgroup))
	m.given("STAGES", h.Stages)
	m.given("SUBGROUP", uint32(h.subgroup))
	m.given("KEY", h.key)
	m.given("VAL", h.val)
	m.given("OPTIONS", h.options)
}

// matrixAttn computes rows of one sequence by cooperative matrices.
var matrixAttn = variant[Attention]{
	Rule: Rule{
		Op: "flash_attn", Variant: shaders.CM, When: "prompts, rows of one sequence; a cache of F16, Q8_0 or Q4_0, heads of up to 128 in multiples of 16, pages of a multiple of 32",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"flash_attn_cm"},
	},
	unfit: func(r *Recorder, a *Attention) string {
		switch t := a.KV; {
		case r.Role != Prompt:
			return "rows to decode"
		case !r.Run:
			return "rows of several sequences"
		case !slices.Contains(shaders.KVTypesCM, t):
			return "a cache of F32"
		case a.KeyLen%16 != 0 || a.ValLen%16 != 0 || max(a.KeyLen, a.ValLen) > shaders.MaxHeadCM:
			return "heads of more than 128 values, or no multiple of 16"
		case a.PagePositions%32 != 0:
			return "pages are no multiple of 32 positions"
		case !r.usable(runChoice(r, t, &a.FlashAttnArgs)):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *Attention) error {
		c, touched, co := a.check(r)
		c.choice = runChoice(r, a.KV, &a.FlashAttnArgs)
		return record(r, &c, &a.FlashAttnArgs, c.choice.heads.groups(&a.FlashAttnArgs), &touched, co)
	},
}

func runChoice(r *Recorder, t gguf.Type, a *shaders.FlashAttnArgs) choice {
	s := RunSplit{cmp.Or(r.RunSplit.Subgroups, ownRun.Subgroups), cmp.Or(r.RunSplit.Stages, ownRun.Stages)}
	if s.SharedBytes(a.KeyLen, a.ValLen) > r.k.shared {
		s = RunSplit{Subgroups: 4, Stages: 1}
	}
	h := heads{r.k.matrix, s, a.KeyLen, a.ValLen, options(a)}
	return choice{op: "flash_attn", variant: shaders.CM, typed: true, typ: t, heads: h}
}

// groups counts the workgroups of flash_attn_cm.
func (h *heads) groups(a *shaders.FlashAttnArgs) uint64 {
	rows := 16 * uint64(h.Subgroups)
	return (uint64(a.Rows) + rows - 1) / rows * uint64(a.Heads)
}
