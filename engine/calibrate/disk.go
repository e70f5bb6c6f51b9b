package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"leat/decompose/pack"
	"leat/vk/file"
)

const (
	diskReaders = 8
	// DiskBlock is what is read at a time, and the least that can be measured.
	DiskBlock = 4 << 20
)

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
	Direct bool   `json:"direct"` // past the page cache
	Cached Cached `json:"cached"` // of a file that was not read so
}

// ReadFile reads up to total bytes of a file as the engine does: past the page cache
// where the system lets us.
func ReadFile(ctx context.Context, path string, total int64) (Disk, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Disk{}, err
	}
	if total = min(total, info.Size()/DiskBlock*DiskBlock); total == 0 {
		return Disk{}, fmt.Errorf("%s is too small to measure: found %d bytes, want at least %d", path, info.Size(), DiskBlock)
	}
	state, err := coolDown(path, total)
	if err != nil {
		return Disk{}, err
	}
	f, err := file.Open(path)
	if err != nil {
		return Disk{}, err
	}
	defer f.Close()
	took, err := readBlocks(ctx, f, total)
	if err != nil {
		return Disk{}, err
	}
	d := Disk{rate(total, took), f.Direct(), state}
	if d.Direct {
		d.Cached = CacheCold
	}
	return d, nil
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

// readBlocks reads the first total bytes with several readers.
func readBlocks(ctx context.Context, f *file.File, total int64) (time.Duration, error) {
	pool := file.NewPool(diskReaders, nil)
	defer pool.Close()
	requests := make([]*file.Request, 2*diskReaders)
	for n := range requests {
		requests[n] = file.NewRequest()
		requests[n].Dst = file.Buffer(DiskBlock)
		clear(requests[n].Dst) // its pages are there before the clock runs
	}
	start := time.Now()
	begun, ended := int64(0), int64(0)
	for blocks := total / DiskBlock; ended < blocks; {
		if begun < blocks && begun-ended < int64(len(requests)) {
			r := requests[begun%int64(len(requests))]
			r.File, r.Off, r.N = f, begun*DiskBlock, DiskBlock
			if err := pool.Start(ctx, r); err != nil {
				return 0, err
			}
			begun++
			continue
		}
		if err := requests[ended%int64(len(requests))].Wait(ctx); err != nil {
			return 0, err
		}
		ended++
	}
	return time.Since(start), nil
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
