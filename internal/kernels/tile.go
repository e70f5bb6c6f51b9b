package kernels

import (
	"cmp"
	"fmt"
	"slices"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// Tile are constants of a mul_mat_vec in teams. A team is a group of lanes that share a row's sum. The program chooses fields of 0 by the product's shape.
type Tile struct {
	Rows   uint32 // rows of weights that each team computes
	Team   uint32 // lanes of a team
	Unroll uint32 // chunks of a row that a lane loads at the same time
	Lanes  uint32 // lanes of a workgroup, which has Lanes / Team teams
}

// Limits of a [Tile]. The first two keep a lane's values in registers, with room to spare; the last is for a workgroup's sums in shared memory.
const (
	maxTeamRows  = 8    // of Rows
	maxUnroll    = 8    // of Unroll
	maxTileLanes = 1024 // of Lanes
	maxTileSums  = 8192 // of Rows × columns × Lanes
)

// constants adds the constants of t that are not 0 to m.
func (t *Tile) constants(m constants) {
	m.setNonzero("NUM_ROWS", t.Rows)
	m.setNonzero("TEAM", t.Team)
	m.setNonzero("UNROLL", t.Unroll)
	m.setNonzero("LANES", t.Lanes)
}

// outputs is how many output rows a workgroup computes. With a gate a row of gate and a row of up make one output.
func (t *Tile) outputs(glu uint32) uint32 {
	n := t.Rows * (t.Lanes / t.Team)
	if isGated(glu) {
		return n / 2
	}
	return n
}

// isGated reports whether a product with this GLU constant has two matrices, gate and up, whose rows are computed together.
func isGated(glu uint32) bool { return glu == shaders.GLUFloats || glu == shaders.GLUBytes }

// vecTile fills in the zero fields of t for a mul_mat_vec in teams with a matrix of m rows of cols values. It uses the values of [Kernels.tile], except for
// shapes for which measurements found values at least 5% faster.
func (k *Kernels) vecTile(t Tile, variant string, of gguf.Type, glu, m, cols uint32) Tile {
	chunks, parts := cols/shaders.Chunk(variant, of), loads64(variant, of)
	switch cpu := k.dev.Physical.Type == vk.CPU; {
	case cpu && parts:
		t = t.or(Tile{Team: minTeam64})
	case cpu, variant != shaders.Int8, glu == shaders.GLUBytes:
	case parts:
		t = t.or(tile64(of, glu, m, chunks))
	case shaders.HasGrid(of):
		t = t.or(gridTile(glu, m, chunks, k.mostLanes(of)))
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

// loads64 reports whether a lane of the variant's kernel loads 64 values of weights of the type at a time. Teams of such kernels have minTeam64 lanes or
// more.
func loads64(variant string, of gguf.Type) bool {
	return (variant == shaders.Int8 || variant == shaders.Turned) && slices.Contains(shaders.PartTypes, of)
}

// minTeam64 is the smallest team of a kernel whose lanes load 64 values at a time, see [loads64].
const minTeam64 = 8

// tile64 is a GPU's tile for a kernel whose lanes load 64 values at a time, see [loads64], and a matrix of m rows. parts is the length of a row divided by
// 64; a team has at most that many lanes.
func tile64(of gguf.Type, glu, m, parts uint32) Tile {
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
	for t.Team > minTeam64 && t.Team > parts {
		t.Team /= 2
	}
	return t
}

// gridTile is a GPU's tile for weights of a type with a grid, of which a workgroup has a copy: it computes many of the m rows of a matrix, so that there are few copies. It has
// at most most lanes.
func gridTile(glu, m, chunks, most uint32) Tile {
	t := Tile{Rows: 1, Team: 32, Lanes: min(256, most)}
	switch {
	case m >= 1<<16:
		t.Rows = 4
	case m > 1<<13 || glu == shaders.GLUFloats:
		t.Rows = 2
	}
	for t.Team > minSubgroup && t.Team > chunks {
		t.Team /= 2
	}
	return t
}

// or is t with its zero fields taken from d.
func (t Tile) or(d Tile) Tile {
	return Tile{Rows: cmp.Or(t.Rows, d.Rows), Team: cmp.Or(t.Team, d.Team), Unroll: cmp.Or(t.Unroll, d.Unroll), Lanes: cmp.Or(t.Lanes, d.Lanes)}
}

// sharedGrid is the most shared memory that a kernel of weights of type t takes for their grid.
func sharedGrid(t gguf.Type) int64 {
	if shaders.HasGrid(t) {
		return 8 << 10
	}
	return 0
}

// mostLanes is the most lanes of a workgroup of a mul_mat_vec in teams: where little shared memory is left beside a grid, few.
func (k *Kernels) mostLanes(of gguf.Type) uint32 {
	most := k.dev.Physical.Limits.MaxWorkgroupInvocations
	if shaders.HasGrid(of) && k.can.shared < leastShared {
		most = min(most, 256)
	}
	return most
}

// tile fills in the zero fields of t, the tile of a mul_mat_vec in teams, for m output rows. chunks is the number of chunks in a row of weights; a lane loads
// one chunk at a time. The choice must not depend on the number of rows of X: the tile sets the order of a sum, and so the bits of the result.
//
// A GPU is fast when many lanes have loads under way. A CPU computes a subgroup as one vector, so its teams are no larger.
func (k *Kernels) tile(t Tile, of gguf.Type, glu, m, chunks uint32) Tile {
	most := k.mostLanes(of)
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

// idTile is [Kernels.tile] for products with experts. Their matrices are small, so a lane should have all its loads of a row under way at the same time.
func (k *Kernels) idTile(t Tile, of gguf.Type, glu, m, chunks uint32) Tile {
	if k.dev.Physical.Type == vk.CPU {
		return k.tile(t, of, glu, m, chunks)
	}
	switch {
	case t.Lanes != 0:
	case glu == shaders.GLUBytes:
		t.Lanes = min(512, k.mostLanes(of))
	case shaders.HasGrid(of): // few copies of it
		t.Lanes = min(256, k.mostLanes(of))
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

// shape checks that a kernel can run with tile t and cols rows of X. A workgroup may have at most most lanes.
func (c *check) shape(t Tile, glu, cols uint32, most uint32) {
	c.atMost("Tile.Rows", t.Rows, maxTeamRows)
	if isGated(glu) {
		c.multiple("Tile.Rows", t.Rows, 2)
	}
	c.atMost("Tile.Unroll", t.Unroll, maxUnroll)
	c.power("Tile.Lanes", t.Lanes, 32, min(most, maxTileLanes))
	least := uint32(minSubgroup)
	if c.op == "mul_mat_vec" && loads64(c.variant, c.typ) {
		least = minTeam64
	}
	c.power("Tile.Team", t.Team, least, t.Lanes)
	c.atMost("Tile.Rows * columns * Tile.Lanes", t.Rows*cols*t.Lanes, maxTileSums)
	if glu == shaders.GLUBytes && c.err == nil {
		c.multiple("the outputs of a workgroup", t.outputs(glu), q8Block)
	}
}

// power checks that n is a power of 2 from least to most.
func (c *check) power(what string, n, least, most uint32) {
	if n&(n-1) != 0 || n < least || n > most {
		c.require(false, what, n, fmt.Sprintf("a power of 2, %d to %d", least, most))
	}
}
