package gpu

import (
	"cmp"
	"slices"

	"leat/gguf"
	"leat/shaders"
)

// heads is what flash_attn_cm is made for.
type heads struct {
	subgroup  int
	subgroups uint32 // of a workgroup; each takes 16 rows
	key, val  uint32
	options   uint32
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

// headSubgroups is how many subgroups a workgroup of flash_attn_cm has where nothing else is asked for.
const headSubgroups = 4

func (h *heads) constant(name string) uint32 {
	switch name {
	case "LANES":
		return h.subgroups * uint32(h.subgroup)
	case "SUBGROUP":
		return uint32(h.subgroup)
	case "KEY":
		return h.key
	case "OPTIONS":
		return h.options
	}
	return h.val
}

// runs reports whether attention is computed by cooperative matrices.
func (r *Recorder) runs(t gguf.Type, a *shaders.FlashAttnArgs) bool {
	return r.k.matrix > 0 && r.Run && slices.Contains(shaders.KVTypesCM, t) && a.Rows >= leastRows && a.KeyLen%16 == 0 && a.ValLen%16 == 0 &&
		max(a.KeyLen, a.ValLen) <= shaders.MaxHeadCM && a.PagePositions%32 == 0 && r.usable(r.runChoice(t, a), func() (*shaders.Kernel, error) { return shaders.FlashAttnCM(t) })
}

func (r *Recorder) runChoice(t gguf.Type, a *shaders.FlashAttnArgs) choice {
	h := heads{r.k.matrix, cmp.Or(r.Subgroups, headSubgroups), a.KeyLen, a.ValLen, options(a)}
	return choice{op: "flash_attn", variant: shaders.CM, typed: true, typ: t, heads: h}
}

// groups counts the workgroups of flash_attn_cm.
func (h *heads) groups(a *shaders.FlashAttnArgs) uint64 {
	rows := 16 * uint64(h.subgroups)
	return (uint64(a.Rows) + rows - 1) / rows * uint64(a.Heads)
}
