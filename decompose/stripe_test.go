package decompose

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/decompose/pack"
)

// striped are options with stripes of few bytes, so that a small model spreads.
func striped(x *fixture, n int) Options {
	o := Options{Verify: true, StripeBytes: 3 * pack.FileAlign}
	for i := range n {
		o.Stripe = append(o.Stripe, filepath.Join(x.dir, string(rune('a'+i)), "part"))
	}
	return o
}

// sameStriped demands that a striped pack holds the plain one's bytes, and each folder its share.
func sameStriped(t *testing.T, x *fixture, o Options) {
	t.Helper()
	if err := pack.Verify(context.Background(), x.out, nil); err != nil {
		t.Fatal(err)
	}
	m, err := pack.Open(x.out)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	spread := 0
	for i, path := range m.Files {
		want := x.want[filepath.Base(path)]
		got := make([]byte, len(want))
		if err := m.ReadAt(i, got, 0); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s differs from the plain pack's: %v", path, err)
		}
		sum := int64(0)
		for _, part := range m.Parts[i] {
			info, err := os.Stat(part)
			if err != nil {
				t.Fatal(err)
			}
			sum += info.Size()
		}
		if n := len(m.Parts[i]); n > 1 {
			spread++
			if n != len(o.Stripe)+1 || sum != int64(len(want)) {
				t.Errorf("%s: %d parts of %d bytes, wanted %d of %d", path, n, sum, len(o.Stripe)+1, len(want))
			}
		}
	}
	if spread == 0 {
		t.Error("no file is spread")
	}
	plain, err := pack.Open(filepath.Join(x.dir, "want"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for i := range plain.Units {
		u := &plain.Units[i]
		want, got := make([]byte, u.Bytes), make([]byte, u.Bytes)
		if err := errors.Join(plain.ReadUnit(u, want), m.ReadUnit(&m.Units[i], got)); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s differs: %v", u.Name, err)
		}
	}
}

func TestStriped(t *testing.T) {
	x := newFixture(t, shape{layers: 3, dim: 512, experts: 2})
	for _, n := range []int{1, 2, 4} {
		o := striped(x, n)
		mustRun(t, x.in, x.out, o, quick())
		sameStriped(t, x, o)
		for _, dir := range append(o.Stripe, x.out) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Writes fail after any number of bytes, the journal and the marks among them; the next run
// takes up what is there, and the parts are the very same.
func TestStripedResumes(t *testing.T) {
	x := newFixture(t, shape{layers: 2, dim: 512})
	o := striped(x, 2)
	resumed := 0
	for _, n := range x.points(24) {
		_, err := run(context.Background(), x.in, x.out, o, failAfter(n, errBroken))
		if err != nil && !errors.Is(err, errBroken) || err == nil && n < x.total-1000 {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		if err != nil {
			if exists(x.out) {
				t.Fatalf("after %d bytes: found %s", n, x.out)
			}
			left := exists(x.out + pack.PartialSuffix)
			if !left && exists(o.Stripe[0]) {
				t.Fatalf("after %d bytes: found %s without its pack", n, o.Stripe[0])
			}
			o.Progress = func(p Progress) {
				if p.Stage == StageCopy && p.Resumed > 0 && p.Done == p.Resumed {
					resumed++
				}
			}
			mustRun(t, x.in, x.out, o, quick())
		}
		sameStriped(t, x, o)
		for _, dir := range append(o.Stripe, x.out) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	if resumed == 0 {
		t.Error("nothing was ever resumed")
	}
}

// What an earlier run left is not mixed with another source, other folders or a plain pack.
func TestStripedAnew(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *fixture, o *Options)
	}{
		{"other folders", func(x *fixture, o *Options) { o.Stripe = []string{filepath.Join(x.dir, "elsewhere")} }},
		{"plain", func(_ *fixture, o *Options) { o.Stripe = nil }},
		{"source touched", func(x *fixture, _ *Options) { os.Chtimes(x.in, time.Time{}, time.Unix(1e9, 0)) }},
		{"a part touched", func(x *fixture, o *Options) {
			writeFile(t, filepath.Join(o.Stripe[0], "layer_000.bin"), []byte("rubbish"))
		}},
		{"a part gone", func(x *fixture, o *Options) { os.Remove(filepath.Join(o.Stripe[0], "layer_000.bin")) }},
		{"a folder gone", func(x *fixture, o *Options) { os.RemoveAll(o.Stripe[0]) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newFixture(t, shape{layers: 4, dim: 512})
			o := striped(x, 1)
			first := o.Stripe[0]
			if _, err := run(context.Background(), x.in, x.out, o, failAfter(x.total*3/4, errBroken)); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			c.change(x, &o)
			mustRun(t, x.in, x.out, o, quick())
			if o.Stripe == nil {
				sameFiles(t, files(t, x.out), x.want)
			} else {
				sameStriped(t, x, o)
			}
			if exists(first) != (len(o.Stripe) > 0 && o.Stripe[0] == first) {
				t.Errorf("the first run's folder: %v", exists(first))
			}
		})
	}
}

// A folder that is moved, missing, another pack's or not empty: an error that says where
// and what to do, before anything is written or read.
func TestStripedFolders(t *testing.T) {
	x := newFixture(t, shape{layers: 2, dim: 512})
	o := striped(x, 1)
	for _, bad := range [][]string{{x.out}, {x.out + pack.PartialSuffix}, {""}, {o.Stripe[0], o.Stripe[0]}} {
		if _, err := run(context.Background(), x.in, x.out, Options{Stripe: bad}, quick()); err == nil || hintOf(err) == "" || exists(x.out) || exists(x.out+pack.PartialSuffix) {
			t.Errorf("stripe over %q: %v", bad, err)
		}
	}
	if err := os.MkdirAll(o.Stripe[0], 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(o.Stripe[0], "holiday.jpg"), []byte("x"))
	_, err := run(context.Background(), x.in, x.out, o, quick())
	if !errors.Is(err, ErrExists) || exists(x.out+pack.PartialSuffix) {
		t.Errorf("a folder with something in it: %v", err)
	}
	wantHint(t, err, "name another folder")
	if err := os.RemoveAll(o.Stripe[0]); err != nil {
		t.Fatal(err)
	}

	mustRun(t, x.in, x.out, o, quick())
	moved := filepath.Join(x.dir, "moved")
	if err := os.Rename(o.Stripe[0], moved); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func() error{
		func() error { _, err := pack.Open(x.out); return err },
		func() error { return pack.Verify(context.Background(), x.out, nil) },
	} {
		err := open()
		if !errors.Is(err, pack.ErrFormat) || !strings.Contains(err.Error(), o.Stripe[0]) {
			t.Errorf("a moved folder: %v", err)
		}
		wantHint(t, err, "put the folder back")
	}
	manifest := filepath.Join(x.out, pack.ManifestName)
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, manifest, bytes.Replace(text, []byte(o.Stripe[0]), []byte("../moved"), 1)) // as the hint says; relative is right, too
	sameStriped(t, x, o)
	writeFile(t, filepath.Join(moved, pack.StripeName), []byte(`{"stripe_id":"another","part":1,"of":2}`))
	if _, err := pack.Open(x.out); !errors.Is(err, pack.ErrFormat) || !strings.Contains(err.Error(), `"another"`) {
		t.Errorf("another pack's folder: %v", err)
	}
}

// A part that is cut or changed is damage that verify names.
func TestStripedDamage(t *testing.T) {
	for _, cut := range []bool{true, false} {
		x := newFixture(t, shape{layers: 2, dim: 512})
		o := striped(x, 1)
		mustRun(t, x.in, x.out, o, quick())
		part := filepath.Join(o.Stripe[0], "layer_001.bin")
		data, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		if data[5]++; cut {
			data = data[:len(data)-pack.FileAlign]
		}
		writeFile(t, part, data)
		var damage *pack.DamageError
		if err := pack.Verify(context.Background(), x.out, nil); !errors.As(err, &damage) || len(damage.Files) != 1 || damage.Files[0].Name != "layer_001.bin" {
			t.Errorf("cut %v: %v", cut, err)
		}
	}
}

// The space is looked at on each drive; of two folders on one, both need it.
func TestStripedSpace(t *testing.T) {
	x := newFixture(t, shape{layers: 4, dim: 512})
	o := striped(x, 1)
	for _, c := range []struct {
		free int64
		fits bool
	}{{x.total + 2<<20 + 1<<16, true}, {x.total/2 + 2<<20, false}} {
		h := quick()
		h.free = func(string) (int64, error) { return c.free, nil }
		_, err := run(context.Background(), x.in, x.out, o, h)
		var short *SpaceError
		if c.fits && err != nil || !c.fits && !errors.As(err, &short) {
			t.Errorf("%d bytes free of %d on the one drive: %v", c.free, x.total, err)
		}
		for _, dir := range append(o.Stripe, x.out) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}
