package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"leat/tools/await"
)

// write makes a file of n random bytes.
func write(t testing.TB, n int64, seed uint64) (path string, content []byte) {
	t.Helper()
	content = make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	path = filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// modes are the ways a file is read.
var modes = []struct {
	name string
	set  func(*File)
	dst  func(n int64) []byte
}{
	{"as it is", func(*File) {}, Buffer},
	{"page cache", func(f *File) { f.refused.Store(true) }, Buffer},
	{"memory at odd addresses", func(*File) {}, func(n int64) []byte { return Buffer(n + 1)[1:] }},
}

// Any range of any file reads as os.File.ReadAt has it.
func TestRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, size := range []int64{1, 511, 4095, 4096, 4097, 100_000, 1 << 20} {
		path, content := write(t, size, uint64(size))
		for _, m := range modes {
			t.Run(fmt.Sprintf("%d bytes, %s", size, m.name), func(t *testing.T) {
				f := open(t, path)
				m.set(f)
				for range 50 {
					off := r.Int64N(size)
					n := r.Int64N(size-off) + 1
					if r.IntN(4) == 0 {
						n = size - off // to the end
					}
					dst := m.dst(Room(off, n))
					if err := f.Read(t.Context(), dst, off, n); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(dst[Skip(off):][:n], content[off:off+n]) {
						t.Fatalf("%d bytes at %d differ", n, off)
					}
				}
			})
		}
	}
}

// A file in stripes reads as the whole does, also in one read over all of them, and from
// whichever part a fault names.
func TestStriped(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	const size = 41*Align + 100
	_, content := write(t, size, 12)
	for _, c := range []struct{ drives, stripe int64 }{{1, Align}, {2, Align}, {2, 5 * Align}, {3, 2 * Align}, {7, 3 * Align}} {
		parts := make([][]byte, c.drives)
		for off := int64(0); off < size; off += c.stripe {
			k := off / c.stripe % c.drives
			parts[k] = append(parts[k], content[off:min(size, off+c.stripe)]...)
		}
		var paths []string
		for i, data := range parts {
			paths = append(paths, filepath.Join(t.TempDir(), fmt.Sprint(i)))
			if err := os.WriteFile(paths[i], data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := OpenStriped(paths, c.stripe)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		for range 100 {
			off := r.Int64N(size)
			n := r.Int64N(size-off) + 1
			for _, dst := range [][]byte{Buffer(Room(off, n)), Buffer(Room(off, n) + 1)[1:]} {
				if err := f.Read(t.Context(), dst, off, n); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(dst[Skip(off):][:n], content[off:off+n]) {
					t.Fatalf("%d drives, stripes of %d: %d bytes at %d differ", c.drives, c.stripe, n, off)
				}
			}
		}
		var e *Error
		if err := f.Read(t.Context(), Buffer(8*Align), size-10, 20); !errors.As(err, &e) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("past the end: %v", err)
		}
	}
	if _, err := OpenStriped([]string{"a", "b"}, 1000); err == nil {
		t.Error("opened with odd stripes")
	}
	if _, err := OpenStriped([]string{"/nowhere/a", "/nowhere/b"}, Align); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing parts: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	path, content := write(f, 50_001, 9)
	file := open(f, path)
	f.Add(int64(0), int64(4096))
	f.Add(int64(4095), int64(2))
	f.Add(int64(50_000), int64(1))
	f.Add(int64(49_000), int64(4000))
	f.Fuzz(func(t *testing.T, off, n int64) {
		if off < 0 || n < 0 || off > 1<<40 || n > 1<<20 {
			return
		}
		dst := Buffer(Room(off, n))
		err := file.Read(context.Background(), dst, off, n)
		if inside := off+n <= int64(len(content)); inside != (err == nil) && n > 0 {
			t.Fatalf("%d bytes at %d of %d: %v", n, off, len(content), err)
		}
		if err == nil && n > 0 && !bytes.Equal(dst[Skip(off):][:n], content[off:off+n]) {
			t.Fatalf("%d bytes at %d differ", n, off)
		}
	})
}

func TestReadErrors(t *testing.T) {
	path, _ := write(t, 10_000, 4)
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			f := open(t, path)
			m.set(f)
			for _, c := range []struct {
				name           string
				off, n, memory int64
				found          int64
				eof            bool
			}{
				{"past the end", 9000, 2000, 8192, 1000, true},
				{"behind the end", 20_000, 1, 8192, 0, true},
				{"too little memory", 4095, 2, 4096, 0, false},
				{"less than nothing", 0, -1, 4096, 0, false},
				{"before the beginning", -1, 1, 4096, 0, false},
			} {
				err := f.Read(t.Context(), m.dst(c.memory), c.off, c.n)
				var e *Error
				if !errors.As(err, &e) || e.Path != path || e.Off != c.off || e.Want != c.n || e.Found != c.found || errors.Is(err, io.ErrUnexpectedEOF) != c.eof {
					t.Errorf("%s: %v (%+v)", c.name, err, e)
				}
			}
			if err := f.Read(t.Context(), nil, 5, 0); err != nil {
				t.Errorf("nothing at all: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := f.Read(ctx, m.dst(4096), 0, 10); !errors.Is(err, context.Canceled) {
				t.Errorf("canceled: %v", err)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// A reader answers every request, whatever the depth, with each request's own bytes.
func TestReaders(t *testing.T) {
	path, content := write(t, 1<<20, 5)
	f := open(t, path)
	for _, depth := range []int{1, 3, 16} {
		p := NewPool(depth, nil)
		r := rand.New(rand.NewPCG(uint64(depth), 6))
		var list []*Request
		for range 40 {
			q := NewRequest()
			q.File, q.Off = f, r.Int64N(1<<20)
			q.N = r.Int64N(1<<20-q.Off) + 1
			q.Dst = Buffer(Room(q.Off, q.N))
			if err := p.Start(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			list = append(list, q)
		}
		for _, q := range list {
			if err := q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(q.Dst[Skip(q.Off):][:q.N], content[q.Off:q.Off+q.N]) {
				t.Errorf("depth %d: %d bytes at %d differ", depth, q.N, q.Off)
			}
		}
		p.Close()
		p.Close()
		if err := p.Start(t.Context(), list[0]); !errors.Is(err, ErrClosed) {
			t.Errorf("start after Close: %v", err)
		}
	}
}

// A request is used again and again without allocation.
func TestNoAllocation(t *testing.T) {
	path, _ := write(t, 1<<16, 7)
	f := open(t, path)
	p := NewPool(2, nil)
	defer p.Close()
	q := NewRequest()
	q.File, q.Off, q.N, q.Dst = f, 100, 5000, Buffer(Room(100, 5000))
	n := testing.AllocsPerRun(50, func() {
		if err := p.Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations a read", n)
	}
}

func TestFault(t *testing.T) {
	path, _ := write(t, 1<<16, 8)
	f := open(t, path)
	bad := errors.New("the disk is on fire")
	p := NewPool(2, func(at string, off, n int64) error {
		if at == path && off == 4096 && n == 10 {
			return bad
		}
		return nil
	})
	defer p.Close()
	for _, c := range []struct {
		off  int64
		want error
	}{{0, nil}, {4096, bad}, {8192, nil}} {
		q := NewRequest()
		q.File, q.Off, q.N, q.Dst = f, c.off, 10, Buffer(4096)
		if err := p.Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if err := q.Wait(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("at %d: %v, wanted %v", c.off, err, c.want)
		}
	}
}

// Close and cancel answer all that waits, and nothing hangs.
func TestReadersEnd(t *testing.T) {
	path, _ := write(t, 1<<16, 10)
	f := open(t, path)
	gate := make(chan struct{})
	p := NewPool(1, func(string, int64, int64) error { <-gate; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	var list []*Request
	for range 5 {
		q := NewRequest()
		q.File, q.N, q.Dst = f, 10, Buffer(4096)
		if err := p.Start(ctx, q); err != nil {
			t.Fatal(err)
		}
		list = append(list, q)
	}
	if err := list[0].Wait(await.Impatient(t)); !errors.Is(err, context.Canceled) || list[0].Ready() {
		t.Errorf("a read that hangs: %v", err)
	}
	cancel()
	go p.Close()
	<-p.stop
	close(gate)
	p.Close()
	for i, q := range list {
		if err := q.Wait(t.Context()); !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

// Reads of all kinds: past the end, into memory at odd
// addresses, over stripes, and where direct reads turn out to be refused.
func TestReadsOfAllKinds(t *testing.T) {
	path, content := write(t, 10*Align+100, 13)
	f := open(t, path)
	p := NewPool(4, nil)
	defer p.Close()
	read := func(f *File, dst []byte, off, n int64) error {
		q := NewRequest()
		q.File, q.Off, q.N, q.Dst = f, off, n, dst
		if err := p.Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		return q.Wait(t.Context())
	}
	check := func(name string, f *File, dst []byte, off, n int64) {
		t.Helper()
		if err := read(f, dst, off, n); err != nil || !bytes.Equal(dst[Skip(off):][:n], content[off:off+n]) {
			t.Errorf("%s: %d bytes at %d differ, %v", name, n, off, err)
		}
	}
	check("whole", f, Buffer(11*Align), 0, 10*Align+100)
	check("the end", f, Buffer(Align), 10*Align+1, 99)
	check("odd memory", f, Buffer(11*Align + 1)[1:], 100, 9*Align)
	var e *Error
	if err := read(f, Buffer(4*Align), 9*Align, 3*Align); !errors.As(err, &e) || !errors.Is(err, io.ErrUnexpectedEOF) || e.Path != path || e.Off != 9*Align || e.Found != Align+100 || e.Want != 3*Align {
		t.Errorf("past the end: %v", err)
	}
	if err := read(f, Buffer(Align), 0, 2*Align); err == nil {
		t.Error("it read into too little memory")
	}
	f.refused.Store(true)
	check("page cache", f, Buffer(11*Align), 5, 9*Align)
	two, err := OpenStriped([]string{path, path}, Align)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	dst := Buffer(4 * Align)
	if err := read(two, dst, 2*Align, 2*Align); err != nil || !bytes.Equal(dst[:Align], content[Align:2*Align]) || !bytes.Equal(dst[Align:2*Align], content[Align:2*Align]) {
		t.Errorf("over two stripes: %v", err)
	}
	if err := read(two, dst, 5*Align+7, 100); err != nil || !bytes.Equal(dst[7:107], content[2*Align+7:2*Align+107]) {
		t.Errorf("in one stripe: %v", err)
	}
}

// BenchmarkRead sweeps the depth of the queue and the size of the pieces over a file
// that no cache holds: LEAT_BENCH_FILE, or one of 256 MiB written here.
func BenchmarkRead(b *testing.B) {
	path := os.Getenv("LEAT_BENCH_FILE")
	if path == "" {
		path, _ = write(b, 256<<20, 11)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	for _, depth := range []int{1, 2, 4, 8, 16} {
		for _, mib := range []int64{1, 4, 16, 64} {
			b.Run(fmt.Sprintf("depth=%d/piece=%dMiB", depth, mib), func(b *testing.B) {
				n := mib << 20
				f, err := Open(path)
				if err != nil {
					b.Fatal(err)
				}
				defer f.Close()
				p := NewPool(depth, nil)
				defer p.Close()
				list := make([]*Request, 2*depth)
				for i := range list {
					list[i] = NewRequest()
					list[i].File, list[i].N, list[i].Dst = f, n, Buffer(n)
				}
				b.SetBytes(n)
				b.ResetTimer()
				for i := range b.N + len(list) {
					q := list[i%len(list)]
					if i >= len(list) {
						if err := q.Wait(context.Background()); err != nil {
							b.Fatal(err)
						}
					}
					if i < b.N {
						q.Off = int64(i) * n % max(n, info.Size()/n*n)
						if err := p.Start(context.Background(), q); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
