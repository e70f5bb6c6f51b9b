package decompose

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/tools/testdata"
)

func realModels(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{
		filepath.Join(testdata.Dir(t), "models", "*.gguf"),
		filepath.Join(testdata.Dir(t), "vendor", "models", "*.gguf"),
		filepath.Join(testdata.Demo(t), "*.gguf"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 30 {
		t.Fatalf("found %d models, wanted the test data's 30 and more", len(all))
	}
	return all
}

// Every model there is: each tensor's bytes through the pack are the GGUF's own, each unit is the
// same from both.
func TestRealModels(t *testing.T) {
	for _, in := range realModels(t) {
		t.Run(filepath.Base(in), func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "pack")
			mustRun(t, in, out, Options{Verify: true}, quick())
			samePack(t, in, out)
		})
	}
}

func TestSynthetic(t *testing.T) {
	for _, c := range []struct {
		name string
		s    shape
	}{
		{"dense", shape{layers: 3, dim: 256}},
		{"tied", shape{layers: 1, dim: 512, tied: true}},
		{"experts", shape{layers: 2, dim: 256, experts: 5}},
		{"shards", shape{layers: 2, dim: 256, experts: 3, shards: 3}},
		{"twelve layers", shape{layers: 12, dim: 256}}, // by number, not by name
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in := c.s.write(t, dir)
			out := filepath.Join(dir, "pack")
			mustRun(t, in, out, Options{Verify: true}, quick())
			samePack(t, in, out)
			if exists(filepath.Join(out, "lm_head.bin")) == c.s.tied {
				t.Errorf("lm_head.bin: tied is %v", c.s.tied)
			}
			if exists(filepath.Join(out, journalName)) || exists(out+pack.PartialSuffix) {
				t.Error("found traces of the work")
			}
		})
	}
}

// Opened by any shard, the pack is the one of the whole file.
func TestShards(t *testing.T) {
	whole, sharded := t.TempDir(), t.TempDir()
	s := shape{layers: 3, dim: 256, experts: 2}
	mustRun(t, s.write(t, whole), filepath.Join(whole, "pack"), Options{}, quick())
	s.shards = 3
	s.write(t, sharded)
	want := files(t, filepath.Join(whole, "pack"))
	delete(want, pack.ManifestName) // names its source
	for _, shard := range []string{"1", "2", "3"} {
		out := filepath.Join(sharded, "pack"+shard)
		mustRun(t, filepath.Join(sharded, "model-0000"+shard+"-of-00003.gguf"), out, Options{}, quick())
		got := files(t, out)
		delete(got, pack.ManifestName)
		sameFiles(t, got, want)
	}
}

func samePack(t *testing.T, in, out string) {
	t.Helper()
	g := open(t, in)
	p := open(t, out)
	if !p.IsPack || p.Manifest == nil || g.IsPack || g.Manifest != nil {
		t.Fatal("found GGUF and pack mixed up")
	}
	if diff := cmp.Diff(g.Keys(), p.Keys()); diff != "" {
		t.Errorf("metadata keys -gguf +pack:\n%s", diff)
	}
	if len(g.Units) != len(p.Units) {
		t.Fatalf("found %d units, wanted %d", len(p.Units), len(g.Units))
	}
	for i := range g.Units {
		sameUnit(t, g, p, i)
	}
	sameTensors(t, in, p)
	checkAligned(t, p)
	if err := pack.Verify(context.Background(), out, nil); err != nil {
		t.Error(err)
	}
}

// sameUnit compares all but the places on disk, which only a pack may choose.
func sameUnit(t *testing.T, g, p *pack.Model, i int) {
	t.Helper()
	gu, pu := g.Units[i], p.Units[i]
	if len(pu.Extents) != 1 {
		t.Errorf("%s: found %d reads in the pack, wanted 1", pu.Name, len(pu.Extents))
	}
	if !bytes.Equal(read(t, g, &gu), read(t, p, &pu)) {
		t.Errorf("%s: found other bytes", pu.Name)
	}
	strip := func(u pack.Unit) pack.Unit {
		u.Extents = nil
		u.Tensors = slices.Clone(u.Tensors)
		for i := range u.Tensors {
			u.Tensors[i].File, u.Tensors[i].Off = 0, 0
		}
		return u
	}
	if diff := cmp.Diff(strip(gu), strip(pu)); diff != "" {
		t.Errorf("unit %d -gguf +pack:\n%s", i, diff)
	}
}

// sameTensors goes past our own units: the bytes as package gguf reads them.
func sameTensors(t *testing.T, in string, p *pack.Model) {
	t.Helper()
	f, err := gguf.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, ti := range f.Tensors {
		want, err := f.ReadTensor(&ti)
		if err != nil {
			t.Fatal(err)
		}
		_, u, ok := p.Tensor(ti.Name)
		if !ok {
			t.Errorf("%s: not in the pack", ti.Name)
			continue
		}
		units := []pack.Unit{*u}
		if u.Kind == pack.Experts {
			units = p.Experts(u.Layer)
		}
		var got []byte
		for i := range units {
			pt, _ := units[i].Tensor(ti.Name)
			got = append(got, read(t, p, &units[i])[pt.UnitOff:pt.UnitOff+pt.Bytes]...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: found other bytes than the GGUF's", ti.Name)
		}
	}
}

func checkAligned(t *testing.T, p *pack.Model) {
	t.Helper()
	for _, f := range p.Manifest.Files {
		if f.Kind != pack.Metadata && f.Bytes%pack.FileAlign != 0 {
			t.Errorf("%s: found %d bytes, wanted a multiple of %d", f.Name, f.Bytes, pack.FileAlign)
		}
	}
	for _, u := range p.Units {
		for _, x := range u.Tensors {
			if x.Off%pack.TensorAlign != 0 || x.UnitOff%pack.TensorAlign != 0 {
				t.Errorf("%s %s: found offsets %d and %d, wanted multiples of %d", u.Name, x.Name, x.Off, x.UnitOff, pack.TensorAlign)
			}
		}
		if e := u.Extents[0]; e.Off%pack.FileAlign != 0 || e.UnitOff != 0 {
			t.Errorf("%s: found its read at %d to %d, wanted a multiple of %d to 0", u.Name, e.Off, e.UnitOff, pack.FileAlign)
		}
	}
}

func TestManifestFigures(t *testing.T) {
	dir := t.TempDir()
	in := shape{layers: 2, dim: 256, experts: 4}.write(t, dir)
	out := filepath.Join(dir, "pack")
	mustRun(t, in, out, Options{}, quick())
	m, err := pack.ReadManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for name, b := range files(t, out) {
		if name != pack.ManifestName {
			total += int64(len(b))
		}
	}
	m.Source, m.Files = nil, nil
	want := pack.Manifest{
		FormatVersion: 1, Model: "synthetic <model> & co", Architecture: "llama", NumLayers: 2, HiddenDim: 256, NumHeads: 4, NumKVHeads: 2,
		HeadDim: 64, VocabSize: 100, Quantization: "Q4_K", LayerFileSize: m.LayerFileSize, ExpertRecordSize: 118784,
		RopeTheta: 500000, RMSNormEps: 1e-6, TotalBytes: total,
	}
	if diff := cmp.Diff(want, *m); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	text := string(files(t, out)[pack.ManifestName])
	for _, part := range []string{`"rms_norm_eps": 0.000001,`, `"shape": [100,256]`, `<model> & co`} {
		if !strings.Contains(text, part) {
			t.Errorf("manifest.json: found no %s", part)
		}
	}
}

func open(t testing.TB, path string) *pack.Model {
	t.Helper()
	m, err := pack.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func read(t testing.TB, m *pack.Model, u *pack.Unit) []byte {
	t.Helper()
	b := bytes.Repeat([]byte{0xa5}, int(u.Bytes)) // gaps must be written too
	if err := m.ReadUnit(u, b); err != nil {
		t.Fatal(err)
	}
	return b
}
