package main

import (
	"context"
	"os"
	"path/filepath"

	"leat/internal/calibrate"
)

// measureDisk reads a file as the weights of the disk tier are read.
func (p *speedProbe) measureDisk(ctx context.Context, path string) {
	total := int64(256 << 20)
	if p.quick {
		total /= 8
	}
	p.found.say("measuring the disk")
	s, err := readDisk(ctx, path, total)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.found.field("disk", "not measured: %s", tilde(err.Error()))
		p.found.warn("measure the disk: "+tilde(err.Error()), "--disk names another folder, or a file to read")
		return
	}
	s.Matters = "weights that fit neither VRAM nor RAM come from it: " + gigabyte(s.BytesPerSec)
	p.add(s)
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

// readDisk measures with the file at path, or with one of total bytes in the folder at path: as tokens
// read it, again and again.
func readDisk(ctx context.Context, path string, total int64) (s speedReport, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	read := calibrate.ReadFile
	if info.IsDir() {
		read = calibrate.ReadFolder
	}
	r, err := read(ctx, path, total)
	if err != nil {
		return s, err
	}
	s = speedReport{Name: "disk", What: tilde(path), Bytes: r.Bytes, BytesPerSec: r.Again}
	s.Verdict = diskVerdict(r.Again, r.Cached)
	return s, nil
}

func diskVerdict(rate float64, state calibrate.Cached) string {
	switch state {
	case calibrate.CacheWarm:
		return "cached, so this is no disk's speed"
	case calibrate.CacheUnknown:
		return verdict(rate, 3, 1) + ", unless it was cached"
	}
	return verdict(rate, 3, 1)
}
