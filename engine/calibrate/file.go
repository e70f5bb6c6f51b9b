package calibrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"leat/engine/plan"
	"leat/gguf"
	"leat/vk"
)

// File is where measurements are kept between runs.
type File struct {
	path string
	data contents
}

// contents is the file's JSON. Another version is measured anew.
type contents struct {
	Version int                     `json:"version"`
	Devices map[string]*Device      `json:"devices"`
	Disks   map[string]*diskContent `json:"disks"`
}

type diskContent struct {
	Disk
	Measured time.Time `json:"measured"`
}

const version = 1

// Open reads the file at path; one that is absent, or not ours, is empty. A path of ""
// keeps nothing.
func Open(path string) *File {
	f := &File{path: path, data: contents{Version: version}}
	if data, err := os.ReadFile(path); err == nil {
		var c contents
		if json.Unmarshal(data, &c) == nil && c.Version == version {
			f.data = c
		}
	}
	if f.data.Devices == nil {
		f.data.Devices = map[string]*Device{}
	}
	if f.data.Disks == nil {
		f.data.Disks = map[string]*diskContent{}
	}
	return f
}

// Forget drops everything, so that it is measured anew.
func (f *File) Forget() {
	f.data.Devices, f.data.Disks = map[string]*Device{}, map[string]*diskContent{}
}

// save writes the file whole or not at all.
func (f *File) save() error {
	if f.path == "" {
		return nil
	}
	data, err := json.MarshalIndent(&f.data, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".calibration-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(data, '\n'))
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// keep saves; a full or read-only disk only costs the next run a second.
func (f *File) keep(log *slog.Logger) {
	if err := f.save(); err != nil {
		log.Warn("the calibration is not kept", "error", err)
	}
}

// Device returns what is known of a device, measuring what is wanted and missing; measuring
// is called before that takes time.
func (f *File) Device(ctx context.Context, dev *vk.Device, w Wanted, log *slog.Logger, measuring func()) (*Device, error) {
	key := deviceKey(dev)
	d := f.data.Devices[key]
	if d == nil {
		d = &Device{Types: map[string]Products{}, Attention: map[string]float64{}}
	}
	if d.complete(w) {
		return d, nil
	}
	measuring()
	if err := d.measure(ctx, dev, w, log); err != nil {
		return nil, fmt.Errorf("calibrate %s: %w", dev.Physical.Name, err)
	}
	f.data.Devices[key] = d
	f.keep(log)
	return d, nil
}

// diskBytes are worth reading: the first of them are quick on any disk.
const diskBytes = 512 << 20

// Disk returns how fast the disk of a model's file is, measuring where that is not known,
// or was measured with less of a file. nil where the file is too small to tell.
func (f *File) Disk(ctx context.Context, path string, log *slog.Logger, measuring func()) (*Disk, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	bytes := min(diskBytes, info.Size()/DiskBlock*DiskBlock)
	key := diskKey(path, info)
	if d := f.data.Disks[key]; d != nil && d.Bytes >= bytes {
		return &d.Disk, nil
	}
	if bytes == 0 {
		return nil, nil
	}
	measuring()
	d, err := ReadFile(ctx, path, bytes)
	if err != nil {
		return nil, fmt.Errorf("calibrate the disk: %w", err)
	}
	f.data.Disks[key] = &diskContent{d, time.Now().UTC().Truncate(time.Second)}
	f.keep(log)
	return &d, nil
}

// DiskKey names the disk that the file at path is on.
func (f *File) DiskKey(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return diskKey(path, info), nil
}

// diskKey names the disk a file is on; a folder where the system has no number for it.
func diskKey(path string, info fs.FileInfo) string {
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
func Speeds(d *Device, disk *Disk, kv gguf.Type) plan.Speeds {
	s := plan.Speeds{
		LinkBytesPerSec: d.UploadPerSec, AttnFlopsPerSec: d.Attention[kv.String()],
		DispatchTime: time.Duration(d.DispatchNanos), HostOverheadPerStep: time.Duration(d.StepNanos),
		TypeBytesPerSec: map[gguf.Type]float64{}, TypeFlopsPerSec: map[gguf.Type]float64{}, TypeRowSeconds: map[gguf.Type]float64{},
	}
	for name, r := range d.Types {
		t, err := gguf.ParseType(name)
		if err != nil {
			continue // of a later version
		}
		s.TypeBytesPerSec[t], s.TypeFlopsPerSec[t], s.TypeRowSeconds[t] = r.ReadPerSec, r.Flops, r.RowSeconds
		s.DeviceBytesPerSec = max(s.DeviceBytesPerSec, r.ReadPerSec)
		s.FlopsPerSec = max(s.FlopsPerSec, r.Flops)
	}
	if disk != nil {
		s.DiskBytesPerSec = disk.BytesPerSec
	}
	return s
}
