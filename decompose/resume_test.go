package decompose

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"leat/decompose/pack"
)

var errBroken = errors.New("the disk broke")

// fixture is a small GGUF and the pack an undisturbed run makes of it.
type fixture struct {
	dir, in, out string
	want         map[string][]byte
	total        int64 // bytes an undisturbed run writes, the journal's among them
}

func newFixture(t testing.TB, s shape) *fixture {
	t.Helper()
	x := &fixture{dir: t.TempDir()}
	x.in, x.out = s.write(t, x.dir), filepath.Join(x.dir, "out")
	h := quick()
	var total atomic.Int64
	h.write = func(f *os.File, p []byte) error {
		total.Add(int64(len(p)))
		_, err := f.Write(p)
		return err
	}
	mustRun(t, x.in, filepath.Join(x.dir, "want"), Options{}, h)
	x.want, x.total = files(t, filepath.Join(x.dir, "want")), total.Load()
	return x
}

// points are byte counts to break at: near both ends, and evenly between.
func (x *fixture) points(n int64) []int64 {
	all := []int64{0, 1, 100, x.total - 1, x.total - 200}
	for i := range n {
		all = append(all, x.total*(i+1)/(n+1))
	}
	return all
}

func (x *fixture) broken(t *testing.T, h *hooks) error {
	t.Helper()
	_, err := run(context.Background(), x.in, x.out, Options{}, h)
	if err == nil {
		t.Fatal("found no error")
	}
	if exists(x.out) {
		t.Fatalf("found %s after %v", x.out, err)
	}
	return err
}

// Writes fail after any number of bytes, twice; then a run that may write makes the very same pack.
func TestFailedWrite(t *testing.T) {
	x := newFixture(t, shape{layers: 2, dim: 256, experts: 2})
	for _, first := range x.points(40) {
		for _, second := range []int64{5000, x.total / 3} {
			if err := x.broken(t, failAfter(first, errBroken)); !errors.Is(err, errBroken) {
				t.Fatalf("after %d bytes: %v", first, err)
			}
			if _, err := run(context.Background(), x.in, x.out, Options{}, failAfter(second, errBroken)); err != nil && !errors.Is(err, errBroken) {
				t.Fatalf("after %d, then %d bytes: %v", first, second, err)
			}
			if !exists(x.out) { // the second may have had so little to do that it got through
				mustRun(t, x.in, x.out, Options{}, quick())
			}
			sameFiles(t, files(t, x.out), x.want)
			if exists(x.out + pack.PartialSuffix) {
				t.Fatalf("after %d, then %d bytes: the partial folder is still there", first, second)
			}
			if err := os.RemoveAll(x.out); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Syncs fail: as bad as a failed write, and as harmless.
func TestFailedSync(t *testing.T) {
	x := newFixture(t, shape{layers: 2, dim: 256})
	for n := range int32(14) {
		h := quick()
		var count atomic.Int32
		h.sync = func(*os.File) error {
			if count.Add(1) > n {
				return errBroken
			}
			return nil
		}
		x.broken(t, h)
		mustRun(t, x.in, x.out, Options{}, quick())
		sameFiles(t, files(t, x.out), x.want)
		if err := os.RemoveAll(x.out); err != nil {
			t.Fatal(err)
		}
	}
}

// A resume writes only what is not finished, and says so.
func TestResumeWritesTheRestOnly(t *testing.T) {
	x := newFixture(t, shape{layers: 8, dim: 256})
	err := x.broken(t, failAfter(x.total*3/4, errBroken))
	wantHint(t, err, "the same command takes it up again")
	h := quick()
	var again atomic.Int64
	h.write = func(f *os.File, p []byte) error {
		again.Add(int64(len(p)))
		_, err := f.Write(p)
		return err
	}
	var resumed int64
	mustRun(t, x.in, x.out, Options{Progress: func(p Progress) { resumed = p.Resumed }}, h)
	sameFiles(t, files(t, x.out), x.want)
	// How many files were finished, not only written, when the failure came is a race.
	if again.Load() > x.total-resumed || resumed < x.total/8 {
		t.Errorf("of %d bytes found %d written again and %d resumed, wanted the rest and no more", x.total, again.Load(), resumed)
	}
}

func TestResumeDistrustsOtherFiles(t *testing.T) {
	for _, c := range []struct {
		name    string
		disturb func(t *testing.T, partial string)
	}{
		{"touched", func(t *testing.T, partial string) {
			writeFile(t, filepath.Join(partial, "layer_000.bin"), make([]byte, len(files(t, partial)["layer_000.bin"])))
		}},
		{"cut", func(t *testing.T, partial string) {
			if err := os.Truncate(filepath.Join(partial, "layer_000.bin"), 5); err != nil {
				t.Fatal(err)
			}
		}},
		{"gone", func(t *testing.T, partial string) {
			if err := os.Remove(filepath.Join(partial, "layer_000.bin")); err != nil {
				t.Fatal(err)
			}
		}},
		{"journal of rubbish", func(t *testing.T, partial string) {
			writeFile(t, filepath.Join(partial, journalName), []byte("{]\nnull\n\x00\n"))
		}},
		{"journal with a torn line", func(t *testing.T, partial string) {
			b := files(t, partial)[journalName]
			writeFile(t, filepath.Join(partial, journalName), b[:len(b)-20])
		}},
		{"journal with a bad line", func(t *testing.T, partial string) {
			b := bytes.Replace(files(t, partial)[journalName], []byte(`{"file"`), []byte(`{"file`), 1)
			writeFile(t, filepath.Join(partial, journalName), b)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newFixture(t, shape{layers: 4, dim: 256})
			x.broken(t, failAfter(x.total*3/4, errBroken))
			partial := x.out + pack.PartialSuffix
			was := files(t, partial)
			c.disturb(t, partial)
			for name, b := range files(t, partial) {
				if !bytes.Equal(b, was[name]) {
					later(t, filepath.Join(partial, name))
				}
			}
			mustRun(t, x.in, x.out, Options{Verify: true}, quick())
			sameFiles(t, files(t, x.out), x.want)
		})
	}
}

// later moves a file's time on, as those of a file system may be coarse.
func later(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
}

// Another source under the same name: nothing of the old one may stay.
func TestSourceChanged(t *testing.T) {
	x := newFixture(t, shape{layers: 4, dim: 256})
	x.broken(t, failAfter(x.total*3/4, errBroken))
	other := shape{layers: 4, dim: 256, seed: 99}
	other.write(t, x.dir)
	later(t, x.in)
	var log bytes.Buffer
	mustRun(t, x.in, x.out, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, quick())
	if !strings.Contains(log.String(), "starts anew") {
		t.Errorf("found no note in the log: %q", log.String())
	}
	samePack(t, x.in, x.out)
}

// The source shrinks, or is written to, under our hands: nothing is left.
func TestSourceChangesMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(path string) error
	}{
		{"shrinks", func(path string) error { return os.Truncate(path, 1000) }},
		{"touched", func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)) }},
		{"gone", os.Remove},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newFixture(t, shape{layers: 20, dim: 1024})
			h := quick()
			var once atomic.Bool
			h.write = func(f *os.File, p []byte) error {
				if strings.HasSuffix(f.Name(), "layer_002.bin.tmp") && once.CompareAndSwap(false, true) {
					if err := c.change(x.in); err != nil {
						return err
					}
				}
				_, err := f.Write(p)
				return err
			}
			err := x.broken(t, h)
			if !errors.Is(err, ErrSource) {
				t.Errorf("found %v, wanted ErrSource", err)
			}
			wantHint(t, err, "once the source is complete")
			if exists(x.out + pack.PartialSuffix) {
				t.Error("the partial folder is still there")
			}
		})
	}
}

// A GGUF that ends early leaves nothing behind.
func TestTruncated(t *testing.T) {
	x := newFixture(t, shape{layers: 2, dim: 256})
	whole, err := os.ReadFile(x.in)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := filepath.Join(dir, "cut.gguf")
	for _, n := range []int{0, 3, 4, 100, 1000, len(whole) / 2, len(whole) - 100} {
		writeFile(t, in, whole[:n])
		_, err := Run(context.Background(), in, filepath.Join(dir, "deep", "out"), Options{})
		if err == nil {
			t.Fatalf("%d of %d bytes: found no error", n, len(whole))
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Fatalf("%d of %d bytes: found %v left", n, len(whole), entries)
		}
	}
}

func TestCancel(t *testing.T) {
	x := newFixture(t, shape{layers: 8, dim: 256})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h := quick()
	h.write = func(f *os.File, p []byte) error {
		if strings.HasSuffix(f.Name(), "layer_006.bin.tmp") {
			cancel()
		}
		_, err := f.Write(p)
		return err
	}
	_, err := run(ctx, x.in, x.out, Options{}, h)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("found %v, wanted a cancel", err)
	}
	wantHint(t, err, "the same command takes it up again")
	if !exists(filepath.Join(x.out+pack.PartialSuffix, "layer_003.bin")) {
		t.Error("found no layer_003.bin to resume from")
	}
	var resumed int64
	mustRun(t, x.in, x.out, Options{Progress: func(p Progress) { resumed = p.Resumed }}, quick())
	sameFiles(t, files(t, x.out), x.want)
	if resumed == 0 {
		t.Error("found nothing resumed")
	}
}

// The disk writes something else than it was told: --verify sees it, and the next run mends it.
func TestVerifySeesBadDisk(t *testing.T) {
	x := newFixture(t, shape{layers: 4, dim: 256})
	h := quick()
	h.write = func(f *os.File, p []byte) error {
		if strings.HasSuffix(f.Name(), "layer_002.bin.tmp") {
			p = bytes.Clone(p)
			p[len(p)/2] ^= 1
		}
		_, err := f.Write(p)
		return err
	}
	_, err := run(context.Background(), x.in, x.out, Options{Verify: true}, h)
	var differ *CompareError
	if !errors.As(err, &differ) || len(differ.Files) != 1 || differ.Files[0] != "layer_002.bin" {
		t.Fatalf("found %v, wanted layer_002.bin to differ", err)
	}
	if exists(x.out) {
		t.Fatal("found the pack under its own name")
	}
	var resumed int64
	m := mustRun(t, x.in, x.out, Options{Verify: true, Progress: func(p Progress) {
		if p.Stage == StageCopy {
			resumed = p.Resumed
		}
	}}, quick())
	sameFiles(t, files(t, x.out), x.want)
	if one := m.LayerFileSize; resumed != m.TotalBytes-one {
		t.Errorf("found %d bytes resumed, wanted all %d but layer_002.bin's %d", resumed, m.TotalBytes, one)
	}
}

func TestProgressAddsUp(t *testing.T) {
	x := newFixture(t, shape{layers: 3, dim: 256})
	last := map[Stage]Progress{}
	m := mustRun(t, x.in, x.out, Options{Verify: true, Progress: func(p Progress) {
		if p.Done < last[p.Stage].Done {
			t.Errorf("%s went back from %d to %d", p.Stage, last[p.Stage].Done, p.Done)
		}
		last[p.Stage] = p
	}}, quick())
	for _, s := range []Stage{StageCopy, StageVerify} {
		if p := last[s]; p.Done != m.TotalBytes || p.Total != m.TotalBytes {
			t.Errorf("%s ends at %d of %d, wanted %d", s, p.Done, p.Total, m.TotalBytes)
		}
	}
}

// What the folder must not be, and who else may be in it.
func TestRefusals(t *testing.T) {
	x := newFixture(t, shape{layers: 1, dim: 256})
	mkdir := func(name string) string {
		path := filepath.Join(x.dir, name)
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := mkdir("foreign.partial")
	writeFile(t, filepath.Join(foreign, "thesis.txt"), []byte("mine"))
	busy, err := openPartial(filepath.Join(x.dir, "busy"), quick())
	if err != nil {
		t.Fatal(err)
	}
	defer busy.close()
	vocab := filepath.Join(x.dir, "want", pack.MetadataName)
	for _, c := range []struct{ name, in, out, text, hint string }{
		{"exists", x.in, mkdir("there"), "already exists", "remove it first"},
		{"exists as a file", x.in, x.in, "already exists", "remove it first"},
		{"partial name", x.in, filepath.Join(x.dir, "a.partial"), "marks unfinished packs", "another OUTDIR"},
		{"foreign folder", x.in, filepath.Join(x.dir, "foreign"), "thesis.txt", "another OUTDIR"},
		{"busy", x.in, filepath.Join(x.dir, "busy"), "another process", "wait for it"},
		{"a pack", filepath.Join(x.dir, "want"), x.out, "found a folder", "decomposed already"},
		{"no source", filepath.Join(x.dir, "none.gguf"), x.out, "no such file", ""},
		{"vocabulary only", vocab, x.out, "found no tensors", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Run(context.Background(), c.in, c.out, Options{})
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("found %v, wanted it to say %q", err, c.text)
			}
			wantHint(t, err, c.hint)
		})
	}
	if !exists(filepath.Join(foreign, "thesis.txt")) || exists(x.out) || exists(x.out+pack.PartialSuffix) {
		t.Error("found a refusal that left traces")
	}
	if _, err := os.ReadDir(filepath.Join(x.dir, "busy"+pack.PartialSuffix)); errors.Is(err, fs.ErrNotExist) {
		t.Error("found the busy folder gone")
	}
}

// The space check counts what a resume has; without room nothing is written.
func TestSpace(t *testing.T) {
	x := newFixture(t, shape{layers: 4, dim: 256})
	withFree := func(n int64) *hooks {
		h := quick()
		h.free = func(string) (int64, error) { return n, nil }
		return h
	}
	var short *SpaceError
	if err := x.broken(t, withFree(1000)); !errors.As(err, &short) {
		t.Fatalf("found %v, wanted a SpaceError", err)
	} else {
		wantHint(t, err, "more on that disk")
	}
	if exists(x.out + pack.PartialSuffix) {
		t.Error("found a partial folder with nothing in it")
	}
	whole := short.Need
	x.broken(t, failAfter(x.total*3/4, errBroken))
	if err := x.broken(t, withFree(1000)); !errors.As(err, &short) {
		t.Fatalf("found %v, wanted a SpaceError", err)
	}
	// How many files were finished, not only written, when the failure came is a race.
	if rest := short.Need - 1<<20; rest >= whole-1<<20 || rest <= 0 {
		t.Errorf("found %d bytes of %d needed, wanted fewer by what is there", rest, whole-1<<20)
	}
	mustRun(t, x.in, x.out, Options{}, withFree(short.Need))
	sameFiles(t, files(t, x.out), x.want)
}
