package main

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
)

// experts is where products with experts find theirs, all of one size, in turn in the weights; a row takes usedExperts of them,
// each turn's rows others.
type experts struct {
	room              *vk.Buffer
	gates, ups        uint64 // tables of addresses
	ids, pairs, tiles uint64
	turns             int // that ids has rows for
}

const (
	allExperts  = 128
	usedExperts = 8
	expertRows  = 4096 // that ids has
)

// openExperts makes the tables for experts of m rows and k values, so many, and the rows' choices.
func (d *device) openExperts(ctx context.Context, o *options, p point) error {
	e := &d.experts
	if e.room != nil {
		e.room.Close()
	}
	*e = experts{turns: expertRows / p.n}
	stride := (weightBytes(p.typ, p.shape, p.n) + 255) &^ 255
	slots := o.memory / stride
	if slots < 2 || e.turns == 0 {
		return unfitError("experts want -memory for two or more, and at most 4096 rows")
	}
	table, ids, pairs := int64(8*allExperts), int64(4*usedExperts*expertRows), int64(4*usedExperts*p.n+255)&^255
	tiles := shaders.TileBytes * int64(shaders.ExpertTiles(uint32(p.n*usedExperts), allExperts, shaders.ExpertCols))
	filled := (2*table+255)&^255 + ids
	room, err := d.dev.NewBuffer("experts", filled+pairs+tiles, vk.DeviceLocal)
	if err != nil {
		return err
	}
	e.room = room
	up, err := d.dev.NewBuffer("experts' tables", filled, vk.Upload)
	if err != nil {
		return err
	}
	defer up.Close()
	m := up.Mapped()
	for i := range int64(2 * allExperts) {
		binary.LittleEndian.PutUint64(m[8*i:], d.weights.Address+uint64(i%slots*stride))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	at := (2*table + 255) &^ 255
	for r := range expertRows {
		for k, id := range rng.Perm(allExperts)[:usedExperts] {
			binary.LittleEndian.PutUint32(m[at+4*int64(r*usedExperts+k):], uint32(id))
		}
	}
	base := room.Address
	e.gates, e.ups, e.ids = base, base+uint64(table), base+uint64(at)
	e.pairs = e.ids + uint64(ids)
	e.tiles = e.pairs + uint64(pairs)
	_, err = d.submit(ctx, func(r *kernels.Recorder) error { return r.Copy(room, 0, up, 0, filled) })
	return err
}

// expertOp is a product of n rows with the matrices of usedExperts experts each; gated, with two of each.
func expertOp(gated bool) func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
	return func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
		e := m.experts
		r.Rows.Role = kernels.Prompt
		if n <= shaders.FewRows {
			r.Rows.Role = kernels.Decode
		}
		p := kernels.ExpertProducts{Type: t, Experts: allExperts, MulMatIDArgs: shaders.MulMatIDArgs{
			Table: e.gates, X: m.x, Dst: m.dst, IDs: e.ids + uint64(m.turn%e.turns*n*usedExperts*4), M: uint32(s.m), K: uint32(s.k),
			Count: uint32(n * usedExperts), Used: usedExperts, XStride: uint32(s.k), DstStride: uint32(s.m), Last: allExperts,
		}}
		if n > shaders.FewRows {
			p.Pairs, p.Tiles = e.pairs, e.tiles
		}
		if gated {
			p.Up = e.ups
		}
		done, err := kernels.MultiplyExperts(r, &p)
		if err == nil && !done {
			err = unfitError("gated experts want a type in blocks, and a device with products of bytes or of matrices")
		}
		return err
	}
}

// expertBytes is what products of n rows read of so many tables: every expert that is chosen, on average, once.
func expertBytes(tables float64) func(t gguf.Type, s shape, n int) int64 {
	return func(t gguf.Type, s shape, n int) int64 {
		chosen := allExperts * (1 - math.Pow(1-float64(usedExperts)/allExperts, float64(n)))
		return int64(tables * chosen * float64(weightBytes(t, s, n)))
	}
}
