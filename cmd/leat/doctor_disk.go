package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"leat/decompose/pack"
)

const (
	diskReaders = 4
	diskBlock   = 4 << 20
)

// cached is what is known of a file's bytes before they are read.
type cached int

const (
	cacheUnknown cached = iota // this system does not tell
	cacheCold                  // they come from the disk
	cacheWarm                  // they come from memory
)

// measureDisk reads a file as the weights of the disk tier are read.
func (d *doctor) measureDisk(ctx context.Context) {
	total := int64(256 << 20)
	if d.quick {
		total /= 8
	}
	path := d.disk
	if path == "" {
		path = defaultDisk()
	}
	s, err := readDisk(ctx, path, total)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		d.field("disk", "not measured: %s", tilde(err.Error()))
		d.warn("measure the disk: "+tilde(err.Error()), "--disk names another folder, or a file to read")
		return
	}
	s.Matters = "weights that fit neither VRAM nor RAM come from it: " + gigabyte(s.BytesPerSec)
	d.add(s)
}

// defaultDisk is where models are likely to be: beside the cache, which is seldom in memory.
func defaultDisk() string {
	if dir, err := os.UserCacheDir(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) { // the folder may not exist yet
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				return dir
			}
		}
	}
	return os.TempDir()
}

// readDisk measures with the file at path, or with one of total bytes that it writes into
// the folder at path and removes.
func readDisk(ctx context.Context, path string, total int64) (s speedReport, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	name := path
	if info.IsDir() {
		if name, err = writeDisk(ctx, path, total); name != "" {
			defer os.Remove(name)
		}
		if err != nil {
			return s, err
		}
	} else if total = min(total, info.Size()/diskBlock*diskBlock); total == 0 {
		return s, fmt.Errorf("%s is too small to measure: found %s, want at least %s", path, formatSize(info.Size()), formatSize(diskBlock))
	}
	f, err := os.Open(name)
	if err != nil {
		return s, err
	}
	defer f.Close()
	avoidCache(f)
	pack.DropCache(f)
	state := probeCache(f, total)
	took, err := readBlocks(ctx, f, total)
	if err != nil {
		return s, err
	}
	s = speedReport{Name: "disk", What: tilde(path), Bytes: total, BytesPerSec: float64(total) / took.Seconds()}
	s.Verdict = diskVerdict(s.BytesPerSec, state)
	return s, nil
}

func diskVerdict(rate float64, state cached) string {
	switch state {
	case cacheWarm:
		return "cached, so this is no disk's speed"
	case cacheUnknown:
		return verdict(rate, 3, 1) + ", unless it was cached"
	}
	return verdict(rate, 3, 1)
}

// writeDisk writes a file that no file system can make smaller. Its name comes back even
// when writing fails.
func writeDisk(ctx context.Context, dir string, total int64) (name string, err error) {
	f, err := os.CreateTemp(dir, ".leat-doctor-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	avoidCache(f)
	rng := rand.NewChaCha8([32]byte{1})
	block := make([]byte, diskBlock)
	for off := int64(0); off < total; off += diskBlock {
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

// readBlocks reads the first total bytes with several readers.
func readBlocks(ctx context.Context, f *os.File, total int64) (time.Duration, error) {
	offsets := make(chan int64, total/diskBlock)
	for off := int64(0); off < total; off += diskBlock {
		offsets <- off
	}
	close(offsets)
	errs := make([]error, diskReaders)
	buffers := make([][]byte, diskReaders)
	for n := range buffers {
		buffers[n] = make([]byte, diskBlock)
		clear(buffers[n]) // its pages are there before the clock runs
	}
	start := time.Now()
	var wg sync.WaitGroup
	for n := range diskReaders {
		wg.Go(func() {
			for off := range offsets {
				if errs[n] = ctx.Err(); errs[n] != nil {
					return
				}
				if _, errs[n] = f.ReadAt(buffers[n], off); errs[n] != nil && !errors.Is(errs[n], io.EOF) {
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start), errors.Join(errs...)
}
