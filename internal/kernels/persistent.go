package kernels

import (
	"fmt"
	"slices"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// What mul_mat_vec_persistent takes. There are no more workgroups of it than most devices have at work at once, so each makes
// outputs turn by turn.
const (
	persistentGroups = 528
	persistentLanes  = 256
	persistentGates  = 128 // lanes of gates, which have two rows under way
	persistentPart   = 64  // values of a row that a lane multiplies together
	persistentMost   = 2   // such parts of a row that a lane should have: it keeps their X in registers
)

// persistentOn reports whether a device gains by it: a CPU runs one subgroup after another.
func persistentOn(dev *vk.Device) bool {
	return dev.Features.Persistent && dev.Physical.Limits.MaxWorkgroupInvocations > persistentLanes
}

// persistentTile fills in what is open in t for rows of so many parts: a lane has few, so that all of a row is asked for at once.
func (k *Kernels) persistentTile(t Tile, glu, parts uint32) Tile {
	rows, lanes, share := uint32(1), uint32(persistentLanes), uint32(1)
	if pairs(glu) {
		rows, lanes, share = 2, persistentGates, persistentMost
	}
	if t.Rows == 0 {
		t.Rows = rows
	}
	if t.Team == 0 {
		t.Team = 8
		for t.Team < 64 && t.Team*share < parts || t.Team*persistentMost < parts && t.Team < maxTileLanes {
			t.Team *= 2
		}
	}
	if t.Unroll == 0 {
		t.Unroll = (parts + t.Team - 1) / t.Team
	}
	if t.Lanes == 0 {
		t.Lanes = max(lanes, t.Team)
	}
	return t
}

// persists reports whether products with rows of so many parts go by it.
func (k *Kernels) persists(of gguf.Type, glu, cols uint32) bool {
	if !k.persistent.Load() || !slices.Contains(shaders.PersistentTypes, of) {
		return false
	}
	t := k.persistentTile(Tile{}, glu, cols/persistentPart)
	return t.Unroll <= maxUnroll && t.Lanes <= k.dev.Physical.Limits.MaxWorkgroupInvocations
}

// persistentWorkgroups are those of so many places for outputs: all have as many turns, or one less.
func (r *Recorder) persistentWorkgroups(places uint64) uint64 {
	most := uint64(persistentGroups)
	if r.Groups > 0 {
		most = uint64(r.Groups)
	}
	turns := (places + most - 1) / most
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
func (c *check) persistentShape(t Tile, glu, parts, most uint32) {
	c.most("Tile.Rows", t.Rows, maxTeamRows)
	if pairs(glu) {
		c.multiple("Tile.Rows", t.Rows, 2)
	}
	c.most("Tile.Unroll", t.Unroll, maxUnroll)
	c.power("Tile.Lanes", t.Lanes, 32, min(most, maxTileLanes))
	c.power("Tile.Team", t.Team, 8, t.Lanes)
	if want := (parts + t.Team - 1) / t.Team; c.err == nil && t.Unroll != want {
		c.that(false, "Tile.Unroll", t.Unroll, fmt.Sprintf("%d: all of a row's %d parts", want, parts))
	}
	c.multiple("K", parts*persistentPart, 4*persistentPart)
	if glu == shaders.NormBytes || c.normed {
		c.that(false, "GLU", glu, "no norm")
	}
}
