package gpu

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// What mul_mat_vec_persistent takes. A workgroup is small, so that a multiprocessor has several, and there are no more of them than most
// devices have at work at once: each makes outputs turn by turn.
const (
	persistentLanes = 128
	persistentShare = 4 // chunks of a row that a lane should have: it can keep their X in registers
	persistentMost  = 8 // chunks of a row that it has at most
)

// PersistentGroups is how many workgroups there are at most.
var PersistentGroups uint64 = 528

// persistentOn reports whether a device gains by it: a CPU runs one subgroup after another.
func persistentOn(dev *vk.Device) bool {
	return dev.Physical.Type != vk.CPU && dev.Physical.Limits.MaxWorkgroupInvocations >= persistentLanes
}

// persistentTile fills in what is open in t for rows of so many chunks: as few lanes to a row as can be, but a subgroup. What a
// lane has under way is of all rows it takes part in.
func (k *Kernels) persistentTile(t Tile, of gguf.Type, glu, chunks uint32) Tile {
	if t.Rows == 0 {
		if t.Rows = 1; pairs(glu) {
			t.Rows = 2
		}
	}
	most := uint32(persistentMost)
	if of == gguf.Q5_K || of == gguf.Q6_K || of == gguf.Q3_K {
		most = 6
	}
	most /= t.Rows
	if t.Team == 0 {
		t.Team = 8
		subgroup := uint32(k.dev.Physical.Limits.Subgroup)
		for t.Team < subgroup && t.Team*min(persistentShare, most) < chunks || t.Team*most < chunks && t.Team < maxTileLanes {
			t.Team *= 2
		}
	}
	if t.Unroll == 0 {
		t.Unroll = (chunks + t.Team - 1) / t.Team
	}
	if t.Lanes == 0 {
		t.Lanes = max(persistentLanes, t.Team)
	}
	return t
}

// persists reports whether products with rows of so many chunks go by it.
func (k *Kernels) persists(of gguf.Type, glu, chunks uint32) bool {
	if !k.persistent.Load() {
		return false
	}
	t := k.persistentTile(Tile{}, of, glu, chunks)
	return t.Unroll <= maxUnroll && t.Lanes <= k.dev.Physical.Limits.MaxWorkgroupInvocations
}

// persistentWorkgroups are those of so many places for outputs: all have as many turns, or one less.
func persistentWorkgroups(places uint64) uint64 {
	turns := (places + PersistentGroups - 1) / PersistentGroups
	if turns == 0 {
		return 0
	}
	return (places + turns - 1) / turns
}

// persistentOutputs is how many outputs a workgroup makes in one place: with bytes whole blocks.
func persistentOutputs(t Tile, glu uint32) uint32 {
	n := t.outputs(glu)
	if glu == shaders.GLUBytes {
		n = max(n, q8Block)
	}
	return n
}

// persistentShape checks a tile of it.
func (c *check) persistentShape(t Tile, glu, chunks, most uint32) {
	rows := uint32(1)
	if pairs(glu) {
		rows = 2
	}
	if t.Rows != rows {
		c.that(false, "Tile.Rows", t.Rows, fmt.Sprint(rows))
	}
	c.most("Tile.Unroll", t.Unroll, maxUnroll)
	c.power("Tile.Lanes", t.Lanes, 32, min(most, maxTileLanes))
	c.power("Tile.Team", t.Team, minSubgroup, t.Lanes)
	if uint64(t.Team)*uint64(t.Unroll) < uint64(chunks) {
		c.that(false, "Tile.Team * Tile.Unroll", t.Team*t.Unroll, fmt.Sprintf("a row's %d chunks", chunks))
	}
	if glu == shaders.NormBytes || c.normed {
		c.that(false, "GLU", glu, "no norm")
	}
}
