package calibrate

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"leat/gguf"
	"leat/internal/predict"
	"leat/vk/file"
	"leat/vk/vktest"
)

// What the upload brought is compared with what was sent.
func TestUpload(t *testing.T) {
	dev := vktest.Open(t)
	u, err := newUploadTest(dev)
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	if _, err := u.run(t.Context(), pieceBytes); err != nil {
		t.Fatal(err)
	}
	if same, err := u.check(t.Context()); err != nil || !same {
		t.Fatalf("check after a good upload: %v, %v", same, err)
	}
	u.last[pieceBytes-1] ^= 1
	if same, err := u.check(t.Context()); err != nil || same {
		t.Errorf("check finds %v, %v; want a difference", same, err)
	}
}

// Measured once: the second time everything is known, and only what is new is measured.
func TestDevice(t *testing.T) {
	dev := vktest.Open(t)
	path := filepath.Join(t.TempDir(), "deep", "calibration.json")
	log := slog.New(slog.DiscardHandler)
	ask := func(f *File, w Wanted) (*Device, int) {
		t.Helper()
		n := 0
		d, err := f.Device(t.Context(), dev, w, log, func() error { n++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return d, n
	}
	w := Wanted{Types: []gguf.Type{gguf.Q4_K}, KV: gguf.F16}
	d, n := ask(Open(path), w)
	if n != 1 {
		t.Errorf("an unknown device was measured %d times", n)
	}
	again, n := ask(Open(path), w)
	if n != 0 || !reflect.DeepEqual(again.Link, d.Link) || again.Types["Q4_K"] != d.Types["Q4_K"] {
		t.Errorf("a known device was measured %d times: %+v, was %+v", n, again, d)
	}
	w.Types = append(w.Types, gguf.F32)
	more, n := ask(Open(path), w)
	if n != 1 || !reflect.DeepEqual(more.Link, d.Link) || more.Types["Q4_K"] != d.Types["Q4_K"] || more.Types["F32"].ReadPerSec <= 0 {
		t.Errorf("with a new type: measured %d times, %+v, was %+v", n, more, d)
	}
	f := Open(path)
	f.Forget()
	if _, n := ask(f, w); n != 1 {
		t.Error("a forgotten device was not measured")
	}
	s := Speeds(d, &Disk{Rate: Rate{1, 1e9}, Again: 2e9}, gguf.F16)
	if s.Disk.BytesPerSec != 2e9 || s.Disk.FirstBytesPerSec != 1e9 || !(s.Link.BytesPerSec > 0) || !(s.Kernels.TypeBytesPerSec[gguf.Q4_K] > 0) || !(s.Kernels.TypeFlopsPerSec[gguf.Q4_K] > 0) ||
		!(s.Kernels.AttnFlopsPerSec > 0) || s.Kernels.DispatchTime <= 0 || s.HostOverheadPerStep <= 0 {
		t.Errorf("implausible: %+v", s)
	}
	t.Logf("%+v", s)
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	model, cache := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "calibration.json")
	write := func(bytes int64) {
		t.Helper()
		if err := os.WriteFile(model, make([]byte, bytes), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	age := 1000 * time.Hour // of what is forgotten before
	ask := func() (*Disk, int) {
		t.Helper()
		n, f := 0, Open(cache)
		f.ForgetDisks(age)
		d, err := f.Disk(t.Context(), []string{model}, slog.New(slog.DiscardHandler), func() error { n++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return d, n
	}
	write(100)
	if d, n := ask(); d != nil || n != 0 {
		t.Errorf("a tiny file: %+v, measured %d times", d, n)
	}
	write(DiskBlock + 5)
	if d, n := ask(); n != 1 || d.Bytes != DiskBlock || d.BytesPerSec <= 0 {
		t.Errorf("a file: %+v, measured %d times", d, n)
	}
	if _, n := ask(); n != 0 {
		t.Error("a known disk was measured")
	}
	write(100) // on the same disk
	if d, n := ask(); d == nil || n != 0 {
		t.Errorf("a tiny file on a known disk: %+v, measured %d times", d, n)
	}
	write(3 * DiskBlock)                              // tells more
	if d, n := ask(); n != 1 || d.Bytes < DiskBlock { // a slow disk got to less than all
		t.Errorf("a larger file: %+v, measured %d times", d, n)
	}
	age = 0
	if _, n := ask(); n != 1 {
		t.Error("an old measurement was believed")
	}
	age = time.Hour
	f := Open(cache)
	for _, d := range f.data.Disks {
		if d.Again <= 0 {
			t.Error("what is read again was not kept")
		}
		d.Again = 0 // as earlier versions wrote it
	}
	earlier, err := f.data.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cache, earlier, 0o644); err != nil {
		t.Fatal(err)
	}
	if d, n := ask(); n != 1 || d.Again <= 0 {
		t.Errorf("a disk that was read once: %+v, measured %d times", d, n)
	}
	if err := os.WriteFile(cache, []byte("{broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, n := ask(); n != 1 {
		t.Error("a broken cache was believed")
	}
}

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	if d, err := ReadFolder(t.Context(), dir, 5*DiskBlock); err != nil || d.Bytes != 5*DiskBlock || d.BytesPerSec <= 0 {
		t.Errorf("a folder: %+v, %v", d, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadFolder(canceled, dir, 2*DiskBlock); err == nil {
		t.Error("canceled, it went on")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%s was left behind", left[0].Name())
	}
}

// Every block is read twice, in the same order, and each pass has its rate: a disk that is three
// times as fast where it has read before says so.
func TestReadTwice(t *testing.T) {
	const blocks, each = 40, 64 << 10
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, make([]byte, blocks*each), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := file.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []block
	for i := range int64(blocks) {
		list = append(list, block{f, i * each, each})
	}
	var mu sync.Mutex
	var clock time.Duration // of the disk
	read := map[int64]int{}
	slow := func(_ string, off, n int64) error {
		mu.Lock()
		defer mu.Unlock()
		clock += 3 * time.Millisecond
		if read[off]++; read[off] == 2 {
			clock -= 2 * time.Millisecond
		}
		return nil
	}
	now := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Unix(0, 0).Add(clock)
	}
	first, again, err := readTwice(t.Context(), [][]block{list}, slow, now)
	if err != nil {
		t.Fatal(err)
	}
	if first.Bytes != blocks*each || math.Abs(first.BytesPerSec*3e-3/each-1) > 1e-9 || math.Abs(again*1e-3/each-1) > 1e-9 {
		t.Errorf("%+v, again %g; wanted %g and %g", first, again, each/3e-3, each/1e-3)
	}
	for i := range int64(blocks) {
		if n := read[i*each]; n != 2 {
			t.Errorf("block %d was read %d times", i, n)
		}
	}
	// A pass of too long a time ends; the other reads no more than that one did.
	clock, read = 0, map[int64]int{}
	eternal := func(path string, off, n int64) error {
		mu.Lock()
		clock += diskTime / 8
		mu.Unlock()
		return slow(path, off, n)
	}
	const length = 4
	var short [][]block
	for i := 0; i < blocks; i += length {
		short = append(short, list[i:i+length])
	}
	if first, _, err = readTwice(t.Context(), short, eternal, now); err != nil {
		t.Fatal(err)
	}
	if first.Bytes >= blocks*each || first.Bytes%(length*each) != 0 {
		t.Errorf("%d of %d bytes were read by a disk without end", first.Bytes, blocks*each)
	}
	for off, n := range read {
		if n > 2 || n == 2 && off >= first.Bytes {
			t.Errorf("block %d was read %d times, the first pass has %d bytes", off/each, n, first.Bytes)
		}
	}
}

// Stretches lie all over the files, none twice, and the first few as far apart as all.
func TestStretches(t *testing.T) {
	blocks := make([]block, 40*stretchBlocks)
	for i := range blocks {
		blocks[i].off = int64(i)
	}
	for _, c := range []struct{ blocks, total, want int }{
		{1, 1, 1}, {7, 100, 1}, {4*stretchBlocks - 1, 1 << 20, 1}, {4 * stretchBlocks, 1 << 20, 4}, {40 * stretchBlocks, 8 * stretchBlocks, 8}, {40 * stretchBlocks, 1 << 20, mostStretches},
	} {
		list := stretches(blocks[:c.blocks], c.total)
		seen, total := map[int64]bool{}, 0
		var first int64
		for i, s := range list {
			total += len(s)
			for _, b := range s {
				if seen[b.off] {
					t.Fatalf("%+v: block %d is read twice", c, b.off)
				}
				seen[b.off] = true
			}
			if i < 4 {
				first = max(first, s[len(s)-1].off)
			}
		}
		if len(list) != c.want || total > c.total {
			t.Errorf("%+v: %d stretches of %d blocks", c, len(list), total)
		}
		if int(first) < c.blocks/2 {
			t.Errorf("%+v: the first four end at block %d", c, first)
		}
	}
}

// The middle stretch tells; what one moment does to the others doesn't.
func TestMiddle(t *testing.T) {
	at := func(seconds ...float64) (ends []time.Duration) {
		sum := 0.0
		for _, s := range seconds {
			sum += s
			ends = append(ends, time.Duration(sum*1e9))
		}
		return ends
	}
	for _, c := range []struct {
		ends []time.Duration
		want float64
	}{{at(2), 50}, {at(9, 1, 1, 5, 1), 100}, {at(1, 1, 4), 100}} {
		if r := middle(c.ends, 100); math.Abs(r.BytesPerSec/c.want-1) > 1e-6 || r.Bytes != int64(len(c.ends))*100 {
			t.Errorf("%v: %+v, wanted %g a second", c.ends, r, c.want)
		}
	}
}

// A rehearsal is kept by its key, until steps of more rows are wanted.
func TestRehearsal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calibration.json")
	ask := func(key string, chunk int) (runs int) {
		t.Helper()
		r, err := Open(path).Rehearsal(key, chunk, slog.New(slog.DiscardHandler), func() (*predict.Rehearsal, error) {
			runs++
			return &predict.Rehearsal{
				Steps: []predict.StepShape{{Rows: 1, Context: 1}}, Layers: map[string][]float64{"a": {1}}, Bytes: map[string]int64{"a": 1}, Overhead: []float64{0}, Chunk: chunk,
			}, nil
		})
		if err != nil || !r.Sound() || r.Chunk < chunk {
			t.Fatalf("%+v, %v", r, err)
		}
		return runs
	}
	for i, c := range []struct {
		key   string
		chunk int
		runs  int
	}{{"x", 64, 1}, {"x", 64, 0}, {"x", 8, 0}, {"y", 8, 1}, {"x", 512, 1}, {"x", 64, 0}} {
		if runs := ask(c.key, c.chunk); runs != c.runs {
			t.Errorf("question %d: rehearsed %d times, wanted %d", i, runs, c.runs)
		}
	}
	failed := errors.New("no room")
	if _, err := Open(path).Rehearsal("z", 1, nil, func() (*predict.Rehearsal, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("a failure: %v", err)
	}
	f := Open(path)
	if r := f.Rehearsed("x"); r == nil || r.Chunk != 512 {
		t.Errorf("of x: %+v", r)
	}
	if r := f.Rehearsed("z"); r != nil {
		t.Errorf("of what was not rehearsed: %+v", r)
	}
	if r := f.Rehearsed(""); r == nil || r.Chunk != 512 {
		t.Errorf("of any: %+v", r)
	}
}

// A model that is striped over disks is as fast as all of them.
func TestDisks(t *testing.T) {
	second, err := os.MkdirTemp("/dev/shm", "leat-test-")
	if err != nil {
		t.Skip("there is no second file system")
	}
	defer os.RemoveAll(second)
	paths := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(second, "b")}
	for _, path := range paths {
		if err := os.WriteFile(path, make([]byte, 2*DiskBlock), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names, err := Disks(paths)
	if err != nil || len(names) != 2 {
		t.Skipf("the file systems are not two: %v, %v", names, err)
	}
	f, n := Open(filepath.Join(t.TempDir(), "calibration.json")), 0
	ask := func(paths ...string) *Disk {
		t.Helper()
		d, err := f.Disk(t.Context(), paths, slog.New(slog.DiscardHandler), func() error { n++; return nil })
		if err != nil || d == nil {
			t.Fatal(d, err)
		}
		return d
	}
	both, a, b := ask(paths...), ask(paths[0]), ask(paths[1])
	if both.BytesPerSec != a.BytesPerSec+b.BytesPerSec || both.Direct != (a.Direct && b.Direct) || n != 2 {
		t.Errorf("both %+v, one %+v, the other %+v, measured %d times", both, a, b, n)
	}
}

// Who interrupts a measurement loses one thing at most: the next one goes on where it stopped.
func TestKeptInPieces(t *testing.T) {
	dev := vktest.Open(t)
	path := filepath.Join(t.TempDir(), "calibration.json")
	log := slog.New(slog.DiscardHandler)
	w := Wanted{Types: []gguf.Type{gguf.F16, gguf.F32}, KV: gguf.F16}
	ctx, cancel := context.WithCancel(t.Context())
	first := Open(path)
	d, kept := &Device{Types: map[string]Products{}, Attention: map[string]float64{}}, 0
	err := d.measure(ctx, dev, w, func() {
		first.data.Devices[DeviceKey(dev)], first.own.Devices[DeviceKey(dev)] = d, d
		first.keep(log)
		if kept++; kept == 2 { // the device, and one type
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || kept != 2 {
		t.Fatalf("kept %d times, then %v", kept, err)
	}
	was := Open(path).data.Devices[DeviceKey(dev)]
	if was == nil || was.Link.Idle <= 0 || was.DispatchNanos <= 0 || len(was.Types) != 1 || len(was.Attention) != 0 {
		t.Fatalf("kept of a measurement that was interrupted: %+v", was)
	}
	refused := errors.New("not now")
	if _, err := Open(path).Device(t.Context(), dev, w, log, func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("a measurement that is refused: %v", err)
	}
	whole, err := Open(path).Device(t.Context(), dev, w, log, func() error { return nil })
	if err != nil || !whole.complete(w) || !reflect.DeepEqual(whole.Link, was.Link) || whole.DispatchNanos != was.DispatchNanos || whole.Types["F16"] != was.Types["F16"] {
		t.Errorf("gone on with: %+v, %v; was %+v", whole, err, was)
	}
}
