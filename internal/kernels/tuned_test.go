package kernels

import (
	"testing"

	"leat/gguf"
	"leat/internal/kernels/cache"
	"leat/shaders"
	"leat/vk/vktest"
)

// A tuned choice is taken whatever the number of rows; what is stale, foreign, hostile or out of range is not.
func TestTuned(t *testing.T) {
	dev := vktest.Open(t)
	folder := cache.Open(t.TempDir())
	key := TableKey(dev)
	tile := Tile{Rows: 2, Team: 16, Unroll: 4, Lanes: 64}
	good := TunedProduct{Type: "Q4_K", K: 512, Tile: tile, Gain: 1.2}
	open := func() *Kernels {
		k, err := New(dev, Options{Cache: folder})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		return k
	}
	tileOf := func(k *Kernels, typ gguf.Type, glu, n, m0 uint32) Tile {
		return teamChoice(k.Recorder(nil), shaders.Int8, typ, glu, n, m0, 512).tile
	}
	plain := open()
	if err := SaveTuned(folder, dev, &Tuned{Kernels: key, Products: []TunedProduct{{Type: "Q4_K", K: 512, Plain: true}, {Type: "Q6_K", K: 512, Plain: true}}}); err != nil {
		t.Fatal(err)
	}
	if err := SaveTuned(folder, dev, &Tuned{Kernels: key, Products: []TunedProduct{good}, Outputs: []TunedOutputs{{Op: "mul_mat", Type: "Q4_K", Rows: 4, Cols: 16}}}); err != nil {
		t.Fatal(err)
	}
	k := open()
	for n := uint32(1); n <= shaders.FewRows; n++ {
		for _, m0 := range []uint32{1, 100, 100000} {
			if got := tileOf(k, gguf.Q4_K, shaders.NoGLU, n, m0); got != tile {
				t.Errorf("%d rows, M %d: tile %v, want %v", n, m0, got, tile)
			}
		}
	}
	if got, want := tileOf(k, gguf.Q4_K, shaders.GLUBytes, 1, 64), tileOf(plain, gguf.Q4_K, shaders.GLUBytes, 1, 64); got != want {
		t.Errorf("gated: tile %v, want the program's own %v", got, want)
	}
	if !k.tuned.Load().prefersFP32(gguf.Q6_K, 512) || k.tuned.Load().prefersFP32(gguf.Q4_K, 512) {
		t.Error("what was tuned first is lost, or was not replaced")
	}
	if o := k.tuned.Load().fp32Outputs("mul_mat", gguf.Q4_K); o.Rows != 4 || o.Cols != 16 {
		t.Errorf("mul_mat has %d x %d outputs", o.Rows, o.Cols)
	}

	with := func(change func(p *TunedProduct)) *Tuned {
		p := good
		change(&p)
		return &Tuned{Kernels: key, Products: []TunedProduct{good, p}}
	}
	for name, bad := range map[string]*Tuned{
		"other kernels":      {Kernels: "0123", Products: []TunedProduct{good}},
		"no such type":       with(func(p *TunedProduct) { p.Type = "Q9_K" }),
		"no kernels for few": with(func(p *TunedProduct) { p.Type = "Q8_1" }),
		"no team":            with(func(p *TunedProduct) { p.Tile.Team = 0 }),
		"odd team":           with(func(p *TunedProduct) { p.Tile.Team = 24 }),
		"wide team":          with(func(p *TunedProduct) { p.Tile.Team = 128 }),
		"many rows":          with(func(p *TunedProduct) { p.Tile.Rows = 9 }),
		"overflow":           with(func(p *TunedProduct) { p.Tile = Tile{1 << 31, 1 << 31, 1 << 31, 1 << 31} }),
		"sums for 8 rows":    with(func(p *TunedProduct) { p.Tile = Tile{8, 64, 1, 256} }),
		"odd gates":          with(func(p *TunedProduct) { p.Gated, p.Tile.Rows = true, 1 }),
		"gates, not blocks":  with(func(p *TunedProduct) { p.Gated, p.Tile = true, Tile{2, 32, 1, 64} }),
		"plain gates":        with(func(p *TunedProduct) { p.Gated, p.Plain, p.Tile = true, true, Tile{} }),
		"no such op":         {Kernels: key, Outputs: []TunedOutputs{{Op: "rope", Type: "Q4_K", Rows: 1, Cols: 1}}},
		"no outputs":         {Kernels: key, Outputs: []TunedOutputs{{Op: "mul_mat", Type: "Q4_K", Rows: 8}}},
		"too many outputs":   {Kernels: key, Outputs: []TunedOutputs{{Op: "mul_mat", Type: "Q4_K", Rows: 8, Cols: 16}}},
		"columns of a vec":   {Kernels: key, Outputs: []TunedOutputs{{Op: "mul_mat_vec", Type: "Q4_K", Rows: 1, Cols: 2}}},
		"no matrices":        {Kernels: key, CMTiles: []TunedCMTile{{CMTile: CMTile{BM: 96, BN: 128, WM: 64, WN: 64}}}},
		"too many":           {Kernels: key, Products: make([]TunedProduct, maxTuned+1)},
	} {
		t.Run(name, func(t *testing.T) {
			own := tileOf(plain, gguf.Q4_K, shaders.NoGLU, 1, 64)
			if err := plain.Use(bad); err == nil {
				t.Error("it is used")
			}
			if got := tileOf(plain, gguf.Q4_K, shaders.NoGLU, 1, 64); got != own {
				t.Errorf("a part of it is used: tile %v", got)
			}
		})
	}
	t.Run("gibberish", func(t *testing.T) {
		err := folder.Update(KindTunes, DeviceKey(dev.Physical), func([]byte) ([]byte, error) { return []byte("{\"products\": 5"), nil })
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tileOf(open(), gguf.Q4_K, shaders.NoGLU, 1, 64), tileOf(plain, gguf.Q4_K, shaders.NoGLU, 1, 64); got != want {
			t.Errorf("tile %v, want the program's own %v", got, want)
		}
	})
}

// A tuned tile of cooperative matrices must have sizes that the kernels support, and fit the lanes and shared memory of the device.
func TestSplitFits(t *testing.T) {
	of := func(bm, bn, wm, wn, bk, stages uint32) CMTile {
		return CMTile{BM: bm, BN: bn, WM: wm, WN: wn, BK: bk, Stages: stages}
	}
	for s, want := range map[CMTile]bool{
		OwnCMTile(1): true, OwnCMTile(64): true, OwnCMTile(65): true, OwnCMTile(512): true,
		of(64, 64, 32, 32, 0, 0): true, of(64, 64, 64, 64, 0, 0): false, of(128, 128, 32, 32, 0, 0): false, of(256, 128, 64, 64, 0, 0): false,
		of(256, 128, 64, 64, 32, 0): true, of(256, 128, 64, 64, 32, 2): false, of(128, 128, 64, 64, 32, 2): true, of(128, 128, 64, 64, 64, 2): false,
		of(512, 64, 64, 64, 32, 0): false, of(128, 128, 64, 64, 16, 0): false, of(128, 128, 64, 64, 32, 3): false, of(128, 128, 16, 64, 0, 0): false,
		of(64, 64, 64, 0, 0, 0): false, {}: false, of(128, 96, 64, 32, 0, 0): false,
	} {
		if why := s.fits(32, 1024, 48<<10); (why == "") != want {
			t.Errorf("%+v: %q, want it to fit %v", s, why, want)
		}
	}
	if own := OwnCMTile(512); own.fits(64, 128, 48<<10) == "" {
		t.Error("256 lanes fit a device of 128")
	}
}
