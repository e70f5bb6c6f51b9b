package calibrate

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"leat/gguf"
	"leat/internal/output"
	"leat/internal/predict"
	"leat/vk"
)

// File is where measurements are kept between runs. Several processes may share one.
type File struct {
	path      string
	data      contents
	own       contents // of data, what this process measured
	forgotten contents // what of the file is not to be believed
}

// Open reads the file at path; one that is absent, or not ours, is empty, and what of it is not as it was written is
// measured anew. A path of "" keeps nothing.
func Open(path string) *File {
	f := &File{path: path, data: empty(), own: empty(), forgotten: empty()}
	if data, err := output.ReadState(path, mostBytes); path != "" && err == nil {
		f.data = decode(data, time.Now())
	}
	return f
}

// Forget drops everything, so that it is measured anew.
func (f *File) Forget() {
	f.forgotten.merge(&f.data)
	f.data, f.own = empty(), empty()
}

// ForgetDisks drops what was measured of disks longer than age ago: that changes with what else
// they do, and with how warm they are.
func (f *File) ForgetDisks(age time.Duration) {
	for name, d := range f.data.Disks {
		if time.Since(d.Measured) >= age {
			f.forgotten.Disks[name] = d
			delete(f.data.Disks, name)
			delete(f.own.Disks, name)
		}
	}
}

// save adds what this process measured to the file, as other processes may have done.
func (f *File) save() error {
	if f.path == "" {
		return nil
	}
	return output.UpdateState(f.path, mostBytes, func(old []byte) ([]byte, error) {
		all := decode(old, time.Now())
		all.drop(&f.forgotten)
		all.merge(&f.own)
		data, err := all.encode()
		if err == nil && len(data) > mostBytes { // of programs long gone
			return f.own.encode()
		}
		return data, err
	})
}

// keep saves; a full or read-only disk only costs the next run a second.
func (f *File) keep(log *slog.Logger) {
	if err := f.save(); err != nil {
		log.Warn("the calibration is not kept", "error", err)
	}
}

// Device returns what is known of a device, measuring what is wanted and missing; measuring
// is called before that takes time, and may refuse it.
func (f *File) Device(ctx context.Context, dev *vk.Device, w Wanted, log *slog.Logger, measuring func() error) (*Device, error) {
	key := DeviceKey(dev)
	d := f.data.Devices[key]
	if d == nil {
		d = &Device{Types: map[string]Products{}, Attention: map[string]float64{}}
	}
	if d.complete(w) {
		return d, nil
	}
	if err := measuring(); err != nil {
		return nil, err
	}
	err := d.measure(ctx, dev, w, func() {
		f.data.Devices[key], f.own.Devices[key] = d, d
		f.keep(log)
	})
	if err != nil {
		return nil, fmt.Errorf("calibrate %s: %w", dev.Physical.Name, err)
	}
	return d, nil
}

// Rehearsal returns what was rehearsed under a key for steps of as many rows as chunk, or asks
// rehearse for it and keeps that. A key names all it depends on: [DeviceKey], the program's
// version, predict.RehearsalKey, the memory for slices of weights.
func (f *File) Rehearsal(key string, chunk int, log *slog.Logger, rehearse func() (*predict.Rehearsal, error)) (*predict.Rehearsal, error) {
	if r := f.data.Rehearsals[key]; r.Sound() && r.Chunk >= chunk {
		return r, nil
	}
	r, err := rehearse()
	if err != nil {
		return nil, err
	}
	f.data.Rehearsals[key], f.own.Rehearsals[key] = r, r
	f.keep(log)
	return r, nil
}

// Rehearsed returns what was rehearsed under a key that begins so, of the most rows to a step; nil: nothing was.
func (f *File) Rehearsed(prefix string) (best *predict.Rehearsal) {
	for _, key := range slices.Sorted(maps.Keys(f.data.Rehearsals)) {
		r := f.data.Rehearsals[key]
		if strings.HasPrefix(key, prefix) && r.Sound() && (best == nil || r.Chunk > best.Chunk) {
			best = r
		}
	}
	return best
}

// diskBytes are worth reading, in the time that is worth it.
const diskBytes = 8 << 30

// Disk returns how fast the disks of a model's files are, all of them together as a striped
// model reads them, measuring what is not known, or was measured with less. nil where the
// files are too small to tell.
func (f *File) Disk(ctx context.Context, paths []string, log *slog.Logger, measuring func() error) (*Disk, error) {
	disks, err := Disks(paths)
	if err != nil {
		return nil, err
	}
	var all *Disk
	for _, name := range disks {
		d, err := f.disk(ctx, name, paths, log, measuring)
		if err != nil || d == nil {
			return nil, err
		}
		if all == nil {
			one := *d
			all = &one
			continue
		}
		all.Bytes, all.BytesPerSec, all.Again = all.Bytes+d.Bytes, all.BytesPerSec+d.BytesPerSec, all.Again+d.Again
		if !d.Direct {
			all.Direct, all.Cached = false, d.Cached
		}
	}
	return all, nil
}

// disk is one disk, by those of the files that are on it.
func (f *File) disk(ctx context.Context, name string, paths []string, log *slog.Logger, measuring func() error) (*Disk, error) {
	var own []string
	var whole int64
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if diskOf(path, info) == name {
			own, whole = append(own, path), whole+info.Size()/DiskBlock*DiskBlock
		}
	}
	asked := min(diskBytes, whole)
	if d := f.data.Disks[name]; d != nil && d.Asked >= asked {
		return &d.Disk, nil
	}
	if asked == 0 {
		return nil, nil
	}
	if err := measuring(); err != nil {
		return nil, err
	}
	d, err := ReadFiles(ctx, own, asked)
	if err != nil {
		return nil, fmt.Errorf("calibrate the disk: %w", err)
	}
	kept := &diskContent{d, asked, time.Now().UTC().Truncate(time.Second)}
	f.data.Disks[name], f.own.Disks[name] = kept, kept
	f.keep(log)
	return &d, nil
}

// Disks names the disks that files are on, in order; folders where the system has no numbers
// for them.
func Disks(paths []string) (names []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if name := diskOf(path, info); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func diskOf(path string, info fs.FileInfo) string {
	if n, ok := deviceNumber(info); ok {
		return fmt.Sprintf("device %#x", n)
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if volume := filepath.VolumeName(path); volume != "" {
		return volume
	}
	return filepath.Dir(path)
}

// Speeds are those of the device and the disk together, as a plan wants them.
func Speeds(d *Device, disk *Disk, kv gguf.Type) predict.Speeds {
	kernels := predict.KernelSpeeds{
		AttnFlopsPerSec: d.Attention[kv.String()], DispatchTime: time.Duration(d.DispatchNanos),
		TypeBytesPerSec: map[gguf.Type]float64{}, TypeFlopsPerSec: map[gguf.Type]float64{}, TypeRowSeconds: map[gguf.Type]float64{},
	}
	for name, r := range d.Types {
		t, err := gguf.ParseType(name)
		if err != nil {
			continue // of a later version
		}
		kernels.TypeBytesPerSec[t], kernels.TypeFlopsPerSec[t], kernels.TypeRowSeconds[t] = r.ReadPerSec, r.Flops, r.RowSeconds
		kernels.BytesPerSec = max(kernels.BytesPerSec, r.ReadPerSec)
		kernels.FlopsPerSec = max(kernels.FlopsPerSec, r.Flops)
	}
	s := predict.Speeds{
		Link:                predict.LinkSpeeds{BytesPerSec: d.Link.Idle, BusyBytesPerSec: d.Link.Busy, OneQueue: d.OneQueue, Bursts: d.Link.Bursts},
		Kernels:             kernels,
		IdleClock:           d.Rests,
		HostOverheadPerStep: time.Duration(d.StepNanos),
	}
	if disk != nil {
		s.Disk.BytesPerSec, s.Disk.FirstBytesPerSec = disk.Again, disk.BytesPerSec
	}
	return s
}
