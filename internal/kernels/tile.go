package kernels

import (
	"cmp"
	"fmt"
	"slices"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// Tile are constants of a mul_mat_vec in teams; 0: chosen by the shape.
type Tile struct{ Rows, Team, Unroll, Lanes uint32 }

// What the registers of a lane hold without spilling, with room; and the shared memory for a workgroup's sums.
const (
	maxTeamRows  = 8
	maxUnroll    = 8
	maxTileLanes = 1024
	maxTileSums  = 8192 // rows × columns × lanes
)

func (t *Tile) constants(m constants) {
	m.given("NUM_ROWS", t.Rows)
	m.given("TEAM", t.Team)
	m.given("UNROLL", t.Unroll)
	m.given("LANES", t.Lanes)
}

// outputs is how many rows of the output a workgroup makes.
func (t *Tile) outputs(glu uint32) uint32 {
	n := t.Rows * (t.Lanes / t.Team)
	if pairs(glu) {
		return n / 2
	}
	return n
}

// pairs reports whether the rows of a product are gates and what they let through.
func pairs(glu uint32) bool { return glu == shaders.GLUFloats || glu == shaders.GLUBytes }

// vecTile fills in what is open in t for a mul_mat_vec in teams of a variant, m rows times cols values: as tile does, but for what was
// measured to be better by a twentieth and more.
func (k *Kernels) vecTile(t Tile, variant string, of gguf.Type, glu, m, cols uint32) Tile {
	chunks, parts := cols/shaders.Chunk(variant, of), byParts(variant, of)
	switch cpu := k.dev.Physical.Type == vk.CPU; {
	case cpu && parts:
		t = t.or(Tile{Team: minPartTeam})
	case cpu, variant != shaders.Int8, glu == shaders.GLUBytes:
	case parts:
		t = t.or(partTile(of, glu, m, chunks))
	case of == gguf.Q6_K && chunks >= 128:
		switch {
		case m >= 1<<15:
			t = t.or(Tile{Rows: 2, Team: 32})
		case m <= 1024 && glu != shaders.GLUFloats:
			t = t.or(Tile{Rows: 1, Team: 128})
		case chunks >= 512:
			t = t.or(Tile{Rows: 2, Team: 128})
		default:
			t = t.or(Tile{Rows: 2, Team: 64})
		}
	}
	return k.tile(t, of, glu, m, chunks)
}

// byParts reports whether a variant takes 64 values of a type at a time; its teams are no smaller than minPartTeam.
func byParts(variant string, of gguf.Type) bool {
	return (variant == shaders.Int8 || variant == shaders.Turned) && slices.Contains(shaders.PartTypes, of)
}

const minPartTeam = 8

// partTile is a GPU's tile for sums of so many parts.
func partTile(of gguf.Type, glu, m, parts uint32) Tile {
	t := Tile{Rows: 2, Team: 32}
	switch {
	case of == gguf.Q3_K && parts >= 256:
		t.Rows = 4
	case of != gguf.Q3_K && (parts >= 256 || of == gguf.Q4_K && parts >= 128):
		t.Team = 64
	case m >= 1<<16:
		t.Team = 16
	case of == gguf.Q4_K && m <= 1<<12 && glu != shaders.GLUFloats:
		t.Rows, t.Unroll = 1, 2
	}
	for t.Team > minPartTeam && t.Team > parts {
		t.Team /= 2
	}
	return t
}

// or is t with what is open taken from d.
func (t Tile) or(d Tile) Tile {
	return Tile{Rows: cmp.Or(t.Rows, d.Rows), Team: cmp.Or(t.Team, d.Team), Unroll: cmp.Or(t.Unroll, d.Unroll), Lanes: cmp.Or(t.Lanes, d.Lanes)}
}

// tile fills in what is open in t, for an output of m rows whose sums are of so many chunks of blocks of a type. Nothing but
// these and the device decides: the order of a sum is part of it.
//
// What counts on a GPU is how many lanes have loads under way. A CPU computes a subgroup as one vector, so its teams are no larger.
func (k *Kernels) tile(t Tile, of gguf.Type, glu, m, chunks uint32) Tile {
	most := k.dev.Physical.Limits.MaxWorkgroupInvocations
	var d Tile
	switch cpu := k.dev.Physical.Type == vk.CPU; {
	case cpu:
		d = Tile{Rows: 8, Team: 8, Unroll: 1, Lanes: 64}
	case glu == shaders.GLUBytes:
		d = Tile{Rows: 2, Unroll: 2, Lanes: min(256, most)}
		if chunks >= 256 {
			d.Unroll, d.Lanes = 4, min(512, most)
		}
		d.Team = d.Lanes / q8Block
	default:
		d = Tile{Rows: 1, Team: 64, Unroll: 1, Lanes: 64}
		if of.BlockSize() == 1 {
			d.Unroll = 2
		}
		if chunks < 256 {
			d.Team = 32
		}
		if glu == shaders.GLUFloats || uint64(m)*uint64(d.Team) > 1<<19 {
			d.Rows = 2
		}
	}
	for d.Team > 4 && d.Team > chunks && glu != shaders.GLUBytes {
		d.Team /= 2
	}
	t = t.or(Tile{Rows: d.Rows, Team: d.Team, Unroll: d.Unroll})
	if t.Lanes == 0 {
		t.Lanes = max(d.Lanes, t.Team)
	}
	return t
}

// idTile is tile for products with experts, whose matrices are small: all that a lane reads of its rows should be under way at once.
func (k *Kernels) idTile(t Tile, of gguf.Type, glu, m, chunks uint32) Tile {
	if k.dev.Physical.Type == vk.CPU {
		return k.tile(t, of, glu, m, chunks)
	}
	if glu == shaders.GLUBytes && t.Lanes == 0 {
		t.Lanes = min(512, k.dev.Physical.Limits.MaxWorkgroupInvocations)
	}
	if t.Team == 0 {
		if t.Team = 8; glu == shaders.GLUBytes {
			t.Team = t.Lanes / q8Block
		}
		for t.Team > minSubgroup && t.Team > chunks && glu != shaders.GLUBytes {
			t.Team /= 2
		}
	}
	if t.Unroll == 0 {
		t.Unroll = max(1, min(4, chunks/t.Team))
	}
	return k.tile(t, of, glu, m, chunks)
}

// shape checks a tile.
func (c *check) shape(t Tile, glu, cols uint32, most uint32) {
	c.most("Tile.Rows", t.Rows, maxTeamRows)
	if pairs(glu) {
		c.multiple("Tile.Rows", t.Rows, 2)
	}
	c.most("Tile.Unroll", t.Unroll, maxUnroll)
	c.power("Tile.Lanes", t.Lanes, 32, min(most, maxTileLanes))
	least := uint32(minSubgroup)
	if c.op == "mul_mat_vec" && byParts(c.variant, c.typ) {
		least = minPartTeam
	}
	c.power("Tile.Team", t.Team, least, t.Lanes)
	c.most("Tile.Rows * columns * Tile.Lanes", t.Rows*cols*t.Lanes, maxTileSums)
	if glu == shaders.GLUBytes && c.err == nil {
		c.multiple("the outputs of a workgroup", t.outputs(glu), q8Block)
	}
}

// power demands a power of two.
func (c *check) power(what string, n, least, most uint32) {
	if n&(n-1) != 0 || n < least || n > most {
		c.that(false, what, n, fmt.Sprintf("a power of 2, %d to %d", least, most))
	}
}
