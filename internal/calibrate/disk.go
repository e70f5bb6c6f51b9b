package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"leat/decompose/pack"
	"leat/internal/plan"
	"leat/vk/file"
	"leat/vk/mem"
)

// DiskBlock is the least that can be measured, and what is read at a time of little.
const DiskBlock = 4 << 20

// Cached is what is known of a file's bytes before they are read.
type Cached int

// Where the bytes come from.
const (
	CacheUnknown Cached = iota // this system does not tell
	CacheCold                  // the disk
	CacheWarm                  // memory
)

// Rate is a number of bytes and how fast they went.
type Rate struct {
	Bytes       int64   `json:"bytes"`
	BytesPerSec float64 `json:"bytes_per_second"`
}

func rate(bytes int64, took time.Duration) Rate {
	return Rate{bytes, float64(bytes) / max(took, time.Nanosecond).Seconds()}
}

// Disk is how fast a file was read.
type Disk struct {
	Rate
	// Again is the rate of the same bytes once more: what a token reads, the one before it has
	// read, and who serves a virtual disk keeps some of it.
	Again  float64 `json:"again_bytes_per_second"`
	Direct bool    `json:"direct"` // past the page cache
	Cached Cached  `json:"cached"` // of a file that was not read so
}

// ReadFile reads up to total bytes of a file as the engine does: past the page cache
// where the system lets us. It ends before, where the disk is slow.
func ReadFile(ctx context.Context, path string, total int64) (Disk, error) {
	return ReadFiles(ctx, []string{path}, total)
}

// ReadFiles reads up to total bytes of several files, from places all over them, and then the
// same again. A rate is that of the middle one of some stretches: disks have moments.
func ReadFiles(ctx context.Context, paths []string, total int64) (d Disk, err error) {
	var files []*file.File
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	var blocks []block
	size, err := readSize(paths, total)
	if err != nil {
		return d, err
	}
	d = Disk{Direct: true, Cached: CacheCold}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return d, err
		}
		n := info.Size() / size
		if n == 0 {
			continue
		}
		f, err := file.Open(path)
		if err != nil {
			return d, err
		}
		if files = append(files, f); !f.Direct() {
			d.Direct = false
			if d.Cached, err = coolDown(path, n*size); err != nil {
				return d, err
			}
		}
		for i := range n {
			blocks = append(blocks, block{f, i * size, size})
		}
	}
	if len(blocks) == 0 || total < DiskBlock {
		return d, fmt.Errorf("%s: too small to measure: found less than %d bytes", strings.Join(paths, ", "), DiskBlock)
	}
	d.Rate, d.Again, err = readTwice(ctx, stretches(blocks, int(total/size)), nil, time.Now)
	return d, err
}

// readSize is how many bytes to read at a time: as many as the engine does, fewer where there is little to read.
func readSize(paths []string, total int64) (int64, error) {
	var whole int64
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		whole += info.Size() / plan.ReadBytes * plan.ReadBytes
	}
	if min(whole, total) < plan.ReadDepth*plan.ReadBytes {
		return DiskBlock, nil
	}
	return plan.ReadBytes, nil
}

// coolDown drops what the page cache holds of a file, as far as it can.
func coolDown(path string, total int64) (Cached, error) {
	f, err := os.Open(path)
	if err != nil {
		return CacheUnknown, err
	}
	defer f.Close()
	avoidCache(f)
	pack.DropCache(f)
	return probeCache(f, total), nil
}

// block is n bytes of a file from off on.
type block struct {
	f      *file.File
	off, n int64
}

const (
	mostStretches = 32
	stretchBlocks = 32 // 256 MiB, some times what is under way at once
	diskTime      = 1500 * time.Millisecond
)

// stretches chooses some of blocks, total at most: runs of neighbours, in an order in which
// the first few lie as far apart as all do; of a small file one.
func stretches(blocks []block, total int) (list [][]block) {
	total = min(total, len(blocks))
	length := total
	if total >= 4*stretchBlocks {
		length = stretchBlocks
	}
	n := total / length
	for i := range n {
		at := i
		if n > 2 {
			at = i * stride(n) % n
		}
		from := at * (len(blocks) - length) / max(1, n-1)
		list = append(list, blocks[from:from+length])
	}
	if len(list) > mostStretches {
		list = list[:mostStretches]
	}
	return list
}

// stride is a step through n places that comes by each of them once.
func stride(n int) int {
	divisor := func(a, b int) int {
		for b > 0 {
			a, b = b, a%b
		}
		return a
	}
	s := max(1, n*5/8)
	for divisor(n, s) > 1 {
		s++
	}
	return s
}

// readTwice reads stretches at the engine's depth, all or for a while, then the same ones again.
func readTwice(ctx context.Context, list [][]block, fault file.Fault, now func() time.Time) (first Rate, again float64, err error) {
	r := &reader{now: now}
	size := list[0][0].n
	const slots = plan.ReadDepth + plan.ReadDepth/2
	// Memory as the engine's staging has it: small pages make small requests, and a virtual disk slower by a third.
	memory, free, err := mem.Anonymous(slots * size)
	if err != nil {
		return Rate{}, 0, fmt.Errorf("allocate %d bytes to read into: %w", slots*size, err)
	}
	defer free()
	clear(memory) // its pages are there before the clock runs
	for i := range int64(slots) {
		q := file.NewRequest()
		q.Dst = memory[i*size : (i+1)*size]
		r.requests = append(r.requests, q)
	}
	r.pool = file.NewPool(plan.ReadDepth, fault)
	defer r.pool.Close()                // before the memory goes, which reads may still write to
	bytes := int64(len(list[0])) * size // of a stretch
	ends, err := r.pass(ctx, list)
	if err != nil {
		return Rate{}, 0, err
	}
	first = middle(ends, bytes)
	if ends, err = r.pass(ctx, list[:len(ends)]); err != nil {
		return Rate{}, 0, err
	}
	return first, middle(ends, bytes).BytesPerSec, nil
}

type reader struct {
	pool     *file.Pool
	requests []*file.Request
	now      func() time.Time
}

// pass reads stretches one behind the other, until all or for a while, and says when each ended.
func (p *reader) pass(ctx context.Context, list [][]block) (ends []time.Duration, err error) {
	all := slices.Concat(list...)
	length := len(list[0])
	start := p.now()
	for begun, ended, most := 0, 0, len(all); ended < most; {
		if begun < most && begun-ended < len(p.requests) {
			r := p.requests[begun%len(p.requests)]
			r.File, r.Off, r.N = all[begun].f, all[begun].off, all[begun].n
			if err := p.pool.Start(ctx, r); err != nil {
				return nil, err
			}
			begun++
			continue
		}
		if err := p.requests[ended%len(p.requests)].Wait(ctx); err != nil {
			return nil, err
		}
		if ended++; ended%length == 0 {
			if ends = append(ends, p.now().Sub(start)); ends[len(ends)-1] > diskTime {
				most = begun // what is under way comes to its end
			}
		}
	}
	return ends, nil
}

// middle is the median rate of stretches that ended at these times; the first of many has the
// start in it.
func middle(ends []time.Duration, bytes int64) Rate {
	r := Rate{Bytes: int64(len(ends)) * bytes}
	var took []time.Duration
	for i, end := range ends {
		if i > 0 {
			end -= ends[i-1]
		}
		took = append(took, end)
	}
	if len(took) > 3 {
		took = took[1:]
	}
	slices.Sort(took)
	r.BytesPerSec = rate(bytes, took[len(took)/2]).BytesPerSec
	return r
}

// ReadFolder measures with a file of total bytes that it writes into dir and removes.
func ReadFolder(ctx context.Context, dir string, total int64) (Disk, error) {
	name, err := writeFile(ctx, dir, total)
	if name != "" {
		defer os.Remove(name)
	}
	if err != nil {
		return Disk{}, err
	}
	return ReadFile(ctx, name, total)
}

// writeFile writes a file that no file system can make smaller. Its name comes back even
// when writing fails.
func writeFile(ctx context.Context, dir string, total int64) (name string, err error) {
	f, err := os.CreateTemp(dir, ".leat-measure-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	avoidCache(f)
	rng := rand.NewChaCha8([32]byte{1})
	block := make([]byte, DiskBlock)
	for off := int64(0); off < total; off += DiskBlock {
		if err := ctx.Err(); err != nil {
			return f.Name(), err
		}
		rng.Read(block)
		if _, err := f.Write(block); err != nil {
			return f.Name(), err
		}
	}
	return f.Name(), f.Sync() // what is not on the disk yet can't be dropped from memory
}
