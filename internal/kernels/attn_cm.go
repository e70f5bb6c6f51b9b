package kernels

import (
	"cmp"
	"slices"

	"leat/gguf"
	"leat/shaders"
)

// cmAttn are all constants of a pipeline of flash_attn_cm.
type cmAttn struct {
	subgroup int // subgroup size
	CMAttn
	keyLen, valLen uint32 // sizes of a key head and a value head
	options        uint32 // see cmAttnOptions
}

// CMAttn are constants of flash_attn_cm, attention by cooperative matrices; 0: the program's own choice.
type CMAttn struct {
	Subgroups uint32 // subgroups of a workgroup; each computes 16 rows of Q
	Stages    uint32 // 2: the next positions are loaded while the current ones are computed; 1: they are loaded afterwards
}

// SharedBytes is the shared memory of a workgroup, for key and value heads of these sizes.
func (s *CMAttn) SharedBytes(key, val uint32) int64 {
	const step = 32 // positions
	k, v, rows := key/8+1, val/8+1, 16*s.Subgroups
	return 16 * int64(max(s.Stages*step*(k+v)+rows*(step/4+1), rows*k, rows*17))
}

// cmAttnOptions is the OPTIONS constant of flash_attn_cm: bits for a soft cap, sinks and slopes.
func cmAttnOptions(a *shaders.FlashAttnArgs) (o uint32) {
	if a.SoftCap > 0 {
		o |= shaders.WithSoftCap
	}
	if a.Sinks != 0 {
		o |= shaders.WithSinks
	}
	if a.Slopes != 0 {
		o |= shaders.WithSlopes
	}
	return o
}

// ownCMAttn is the program's own choice of [CMAttn]. If a device has too little shared memory for it, Stages is 1.
var ownCMAttn = CMAttn{Subgroups: 4, Stages: 2}

// constants adds the constants of h that are not 0 to m.
func (h *cmAttn) constants(m constants) {
	m.setNonzero("LANES", h.Subgroups*uint32(h.subgroup))
	m.setNonzero("STAGES", h.Stages)
	m.setNonzero("SUBGROUP", uint32(h.subgroup))
	m.setNonzero("KEY", h.keyLen)
	m.setNonzero("VAL", h.valLen)
	m.setNonzero("OPTIONS", h.options)
}

// matrixAttn computes attention of rows of one sequence by cooperative matrices.
var matrixAttn = variant[Attention]{
	Rule: Rule{
		Op: "flash_attn", Variant: shaders.CM, When: "prompts, rows of one sequence; a cache of F16, Q8_0 or Q4_0, heads of up to 128 in multiples of 16, pages of a multiple of 32",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"flash_attn_cm"},
	},
	unfit: func(r *Recorder, a *Attention) string {
		switch t := a.KV; {
		case r.Rows.Role != Prompt:
			return "rows to decode"
		case !r.Rows.Run:
			return "rows of several sequences"
		case !slices.Contains(shaders.KVTypesCM, t):
			return "a cache of F32"
		case a.KeyLen%16 != 0 || a.ValLen%16 != 0 || max(a.KeyLen, a.ValLen) > shaders.MaxHeadCM:
			return "heads of more than 128 values, or no multiple of 16"
		case a.PagePositions%32 != 0:
			return "pages are no multiple of 32 positions"
		case !r.usable(cmAttnChoice(r, t, &a.FlashAttnArgs)):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *Attention) error {
		c, touched, co := a.check(r)
		c.choice = cmAttnChoice(r, a.KV, &a.FlashAttnArgs)
		return record(r, &c, &a.FlashAttnArgs, c.choice.cmAttn.groups(&a.FlashAttnArgs), &touched, co)
	},
}

// cmAttnChoice is the pipeline of flash_attn_cm for a KV cache of type t.
func cmAttnChoice(r *Recorder, t gguf.Type, a *shaders.FlashAttnArgs) choice {
	s := CMAttn{cmp.Or(r.Override.CMAttn.Subgroups, ownCMAttn.Subgroups), cmp.Or(r.Override.CMAttn.Stages, ownCMAttn.Stages)}
	if s.SharedBytes(a.KeyLen, a.ValLen) > r.k.can.shared {
		s = CMAttn{Subgroups: 4, Stages: 1}
	}
	h := cmAttn{r.k.can.matrix, s, a.KeyLen, a.ValLen, cmAttnOptions(a)}
	return choice{op: "flash_attn", variant: shaders.CM, typed: true, typ: t, cmAttn: h}
}

// groups counts the workgroups of flash_attn_cm.
func (h *cmAttn) groups(a *shaders.FlashAttnArgs) uint64 {
	rows := 16 * uint64(h.Subgroups)
	return (uint64(a.Rows) + rows - 1) / rows * uint64(a.Heads)
}
