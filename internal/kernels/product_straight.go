package kernels

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// Limits of mul_mat_vec_straight. Its code has no loop, so a lane computes a bounded number of values, and a workgroup a whole row.
const (
	straightGroup    = 256   // values of a row that are multiplied together
	straightSubgroup = 8     // lanes that multiply a group
	straightUnroll   = 8     // most groups of a lane: the length of the code grows with their number
	straightMost     = 32768 // longest row: what a team of maxTileLanes/8 lanes computes with straightUnroll groups for each lane
	straightCols     = 2     // most rows of X
)

// straightProduct is like [longsProduct], for CPUs, with code without a loop: the driver can then start loads of several groups at the same time.
var straightProduct = variant[Products]{
	Rule: Rule{
		Op: "mul_mat_vec", Variant: shaders.Straight,
		When:  "as int8; weights Q4_0, Q8_0, Q4_K, Q5_K or Q6_K, rows of up to 32768 values in whole groups of 256, with Q6_K of 512",
		Needs: needsBytes + ", 64-bit integers; a CPU with subgroups of 8", lacks: lacksStraight, kernels: []string{"mul_mat_vec_straight", "quantize_q8"},
	},
	unfit: func(r *Recorder, p *Products) string {
		switch {
		case r.Override.Tile != (Tile{}):
			return "a tile is given, and it takes few"
		case straightSteps[p.Type] > 0 && !fitsStraight(p.Type, p.K):
			return "rows are no whole groups of 256 (Q6_K: 512) values, or too long"
		}
		return unfitTeam(r, p, shaders.Straight)
	},
	record: func(r *Recorder, p *Products) error { return recordTeam(r, p, shaders.Straight) },
}

// straightOn reports whether a device is faster with mul_mat_vec_straight.
func straightOn(dev *vk.Device) bool {
	return dev.Physical.Type == vk.CPU && dev.Physical.Limits.Subgroup == straightSubgroup && dev.Physical.Limits.MaxWorkgroupInvocations >= maxTileLanes
}

// straightSteps has, by the type of the weights, a number of values that must divide the length of rows: a group of 256, or two groups for Q6_K, where only
// every other group begins at a whole word.
var straightSteps = findStraight()

// findStraight finds [straightSteps] in the shaders' table.
func findStraight() map[gguf.Type]uint32 {
	m := map[gguf.Type]uint32{}
	for _, k := range shaders.Kernels() {
		if k.Op != "mul_mat_vec" || k.Variant != shaders.Straight {
			continue
		}
		if m[k.Type] = straightGroup; k.Type == gguf.Q6_K {
			m[k.Type] *= 2
		}
	}
	return m
}

// fitsStraight reports whether mul_mat_vec_straight can compute rows of cols weights of type t.
func fitsStraight(t gguf.Type, cols uint32) bool {
	step := straightSteps[t]
	return step > 0 && cols%step == 0 && cols <= straightMost
}

// straightTile fills in the zero fields of t for rows of cols values, with as few subgroups to a row as possible.
func straightTile(t Tile, cols uint32) Tile {
	groups, parts := (cols+straightGroup-1)/straightGroup, uint32(1)
	for parts*straightUnroll < groups {
		parts *= 2
	}
	if t.Team == 0 {
		t.Team = straightSubgroup * parts
	}
	if t.Unroll == 0 {
		t.Unroll = (groups*straightSubgroup/t.Team + 1) &^ 1
		for t.Unroll*t.Team < groups*straightSubgroup {
			t.Unroll += 2
		}
	}
	if t.Rows == 0 {
		if t.Rows = 4; 16*t.Team > maxTileLanes {
			t.Rows = 8
		}
	}
	if t.Lanes == 0 {
		t.Lanes = min(16*t.Team, maxTileLanes)
	}
	return t
}

// checkStraight checks the tile of a mul_mat_vec_straight for rows of cols values, and that the kernel can number its workgroups.
func checkStraight(c *check, t Tile, cols uint32, workgroups uint64) {
	if straightSteps[c.typ] == 0 {
		return // looking up the kernel in the shaders' table will fail
	}
	c.multiple("K", cols, straightSteps[c.typ])
	c.atMost("K", cols, straightMost)
	c.multiple("Tile.Team", t.Team, straightSubgroup)
	c.multiple("Tile.Unroll", t.Unroll, straightSteps[c.typ]/straightGroup)
	if c.err == nil {
		c.atMost("K", cols, t.Team/straightSubgroup*t.Unroll*straightGroup)
	}
	if c.err == nil && workgroups > 1<<shaders.StraightBits {
		c.require(false, "workgroups", uint32(min(workgroups, 1<<32-1)), fmt.Sprintf("at most %d", 1<<shaders.StraightBits))
	}
}

// lacksStraight says what the device lacks for [straightProduct], "" if nothing.
func lacksStraight(k *Kernels) string {
	if lacks := lacksLongs(k); lacks != "" || k.can.straight {
		return lacks
	}
	return "subgroups of 8"
}
