package kernels

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
)

// Constants of mul_mat_vec_persistent. It has no more workgroups than most devices run at the same time, so each workgroup computes outputs in several
// turns.
const (
	persistentGroups = 528 // most workgroups
	persistentLanes  = 256 // lanes of a workgroup without gates
	persistentGates  = 128 // lanes of a workgroup with gates, where each lane has two rows under way
	persistentPart   = 64  // values of a part of a row, which a lane multiplies together
	persistentMost   = 2   // most parts of a row that a lane should have: it keeps their X in registers
)

// persistentProduct is like [int8Product], for gates. Its workgroups compute several outputs in turn: each loads the weights of its next outputs while it
// multiplies.
var persistentProduct = variant[Products]{
	Rule: Rule{
		Op: "mul_mat_vec", Variant: shaders.Persistent, When: "decode; gates of Q4_K, Q5_K or Q6_K, rows of up to 32768 values",
		Needs: needsBytes + "; no CPU", lacks: lacksPersistent, kernels: []string{"mul_mat_vec_persistent", "quantize_q8"},
	},
	unfit:  unfitPersistent,
	record: func(r *Recorder, p *Products) error { return recordTeam(r, p, shaders.Persistent) },
}

// lacksPersistent says what the device lacks for [persistentProduct], "" if nothing: int8 products, or workgroups that run side by side. A CPU runs
// one subgroup after another, and gains nothing; no GPU of small workgroups has been measured.
func lacksPersistent(k *Kernels) string {
	if lacks := lacksBytes(k); lacks != "" || k.dev.Features.Persistent && k.dev.Physical.Limits.MaxWorkgroupInvocations > persistentLanes {
		return lacks
	}
	return "workgroups that run side by side"
}

// unfitPersistent says why [persistentProduct] can't, or should not, record p, "" if it can.
func unfitPersistent(r *Recorder, p *Products) string {
	switch {
	case r.Rows.Role != Decode:
		return "rows of a prompt"
	case !p.GLU:
		return "no gates"
	case r.Override.Tile != (Tile{}):
		return "a tile is given"
	case r.k.tuned.Load().tile(p.Type, true, p.K) != (Tile{}):
		return "another tile was faster when tuned"
	}
	// The check is for the most columns that a step has: the choice must not depend on how many rows share a step.
	if t := persistentTile(Tile{}, shaders.GLUFloats, p.K/persistentPart); t.Rows*shaders.FewRows*t.Lanes > persistentSums {
		return "rows are too long"
	}
	return unfitTeam(r, p, shaders.Persistent)
}

// persistentSums takes the place of maxTileSums for mul_mat_vec_persistent, which has the sums of two turns in memory.
const persistentSums = maxTileSums / 2

// persistentTile fills in the zero fields of t for mul_mat_vec_persistent. parts is the length of a row divided by persistentPart. A lane gets few
// parts, so that all loads of a row are under way at the same time.
func persistentTile(t Tile, glu, parts uint32) Tile {
	own, share := Tile{Rows: 1, Team: 8, Lanes: persistentLanes}, uint32(1)
	if isGated(glu) {
		own.Rows, own.Lanes, share = 2, persistentGates, persistentMost
	}
	for own.Team < 64 && own.Team*share < parts || own.Team*persistentMost < parts && own.Team < maxTileLanes {
		own.Team *= 2
	}
	t = t.or(Tile{Rows: own.Rows, Team: own.Team})
	return t.or(Tile{Unroll: (parts + t.Team - 1) / t.Team, Lanes: max(own.Lanes, t.Team)})
}

// persistentWorkgroups is the number of workgroups, at most most, that compute places groups of outputs. A workgroup computes one group in each turn. All
// workgroups have the same number of turns, or one less.
func persistentWorkgroups(places, most uint64) uint64 {
	turns := (places + most - 1) / most
	if turns == 0 {
		return 0
	}
	return (places + turns - 1) / turns
}

// persistentOutputs is how many outputs a workgroup computes in one turn; if outputs are stored as int8 too, at least a whole block.
func persistentOutputs(t Tile, glu uint32) uint32 {
	n := t.outputs(glu)
	if glu == shaders.GLUBytes {
		n = max(n, q8Block)
	}
	return n
}

// MulMatPersistent is [MulMatTeam] of mul_mat_vec_persistent by at most groups workgroups.
func MulMatPersistent(r *Recorder, t gguf.Type, glu, groups uint32, a shaders.MulMatTeamArgs) error {
	return mulMatTeam(r, shaders.Persistent, t, glu, groups, a)
}

// checkPersistent checks the tile of a mul_mat_vec_persistent for rows of cols values. A workgroup may have at most most lanes.
func checkPersistent(c *check, t Tile, glu, cols, most uint32) {
	c.atMost("Tile.Rows", t.Rows, maxTeamRows)
	if isGated(glu) {
		c.multiple("Tile.Rows", t.Rows, 2)
	}
	c.atMost("Tile.Unroll", t.Unroll, maxUnroll)
	c.power("Tile.Lanes", t.Lanes, 32, min(most, maxTileLanes))
	c.power("Tile.Team", t.Team, minTeam64, t.Lanes)
	c.atMost("Tile.Rows * columns * Tile.Lanes", t.Rows*c.cols*t.Lanes, persistentSums)
	if n := t.outputs(glu); glu == shaders.GLUBytes && c.err == nil && n%q8Block != 0 && q8Block%n != 0 {
		c.require(false, "the outputs of a workgroup", n, "whole blocks of 32, or a part of one")
	}
	parts := cols / persistentPart
	if want := (parts + t.Team - 1) / t.Team; c.err == nil && t.Unroll != want {
		c.require(false, "Tile.Unroll", t.Unroll, fmt.Sprintf("%d: all of a row's %d parts", want, parts))
	}
}
