package synthetic

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"leat/gguf"
)

// Options says which model to write. The zero value is llama/tiny in q4_k_m.
type Options struct {
	Arch       string // one of Arches; "": the preset's
	Preset     string // "": tiny
	Type       string // q4_k_m, q5_k_m or a tensor type for all matrices; "": q4_k_m
	Shape             // what is not 0 replaces the preset's
	Seed       uint64
	RouterSkew float64                 // 0: experts equally popular; 1: strongly unequal
	Shards     int                     // 0, 1: one file
	Alignment  int64                   // of tensors in the file; 0: 32
	Hollow     bool                    // no weights: the matrices are holes in the file, to plan with and not to run
	Progress   func(done, total int64) // bytes of tensors; may be nil

	poolBytes int64 // of random blocks for each type and width; 0: 64 MiB. Tests make it small
}

// Write writes the model to path; with several shards, to path less its .gguf with a
// shard's ending for each. A file appears under its name when it is complete.
func Write(path string, o Options) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write synthetic model %s: %w", path, err)
		}
	}()
	o, err = o.settle()
	if err != nil {
		return err
	}
	m, err := parseMixture(o.Type)
	if err != nil {
		return err
	}
	tensors, err := o.tensors(m)
	if err != nil {
		return err
	}
	md, err := o.metadata(m)
	if err != nil {
		return err
	}
	parts := split(tensors, o.Shards)
	names := Paths(path, o)
	defer func() {
		if err != nil {
			for _, n := range names {
				os.Remove(n + partial)
			}
		}
	}()
	src := newSource(o, tensors, progress(o, tensors))
	first := 0
	for i, part := range parts {
		shardMD, err := shardMetadata(md, i, len(parts), len(tensors))
		if err != nil {
			return err
		}
		if err := writeFile(names[i]+partial, shardMD, src.writeTensors(part, first), o.Alignment); err != nil {
			return err
		}
		first += len(part)
	}
	for _, n := range names {
		if err := os.Rename(n+partial, n); err != nil {
			return err
		}
	}
	return nil
}

const partial = ".partial"

// Paths are the files that Write makes.
func Paths(path string, o Options) []string {
	if o.Shards <= 1 {
		return []string{path}
	}
	var p []string
	for i := range o.Shards {
		p = append(p, gguf.ShardPath(strings.TrimSuffix(path, ".gguf"), i, o.Shards))
	}
	return p
}

// split deals the tensors, in order, into n runs of nearly equal bytes.
func split(tensors []tensor, n int) [][]tensor {
	var total, done int64
	for _, t := range tensors {
		total += t.bytes
	}
	parts := make([][]tensor, n)
	for _, t := range tensors {
		i := int(done / (total/int64(n) + 1))
		parts[i] = append(parts[i], t)
		done += t.bytes
	}
	return parts
}

// shardMetadata is the whole in the first shard, and the split.* keys in all.
func shardMetadata(md *gguf.Metadata, i, n, tensors int) (*gguf.Metadata, error) {
	if n == 1 {
		return md, nil
	}
	s := gguf.NewMetadata()
	if i == 0 {
		s = md.Clone()
	}
	return s, errors.Join(s.Set("split.no", uint16(i)), s.Set("split.count", uint16(n)), s.Set("split.tensors.count", int32(tensors)))
}

func (s *source) writeTensors(part []tensor, first int) []gguf.WriteTensor {
	ts := make([]gguf.WriteTensor, len(part))
	for i, t := range part {
		ts[i] = gguf.WriteTensor{Name: t.name, Type: t.typ, Shape: t.shape, Data: data{s, t, first + i}}
		if s.o.Hollow && t.kind == matrix {
			ts[i].Data = hole{t.bytes, s.done}
		}
	}
	return ts
}

func progress(o Options, tensors []tensor) func(int) {
	if o.Progress == nil {
		return func(int) {}
	}
	var done, total int64
	for _, t := range tensors {
		total += t.bytes
	}
	return func(n int) {
		done += int64(n)
		o.Progress(done, total)
	}
}

// syncBytes is the size from which a file is synced: a benchmark that reads it next must
// not compete with the kernel still writing it. Tests' small models need not wait.
const syncBytes = 64 << 20

func writeFile(path string, md *gguf.Metadata, ts []gguf.WriteTensor, alignment int64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := &holeWriter{f: f}
	if err := gguf.Write(w, md, ts, gguf.WriteOptions{Alignment: alignment}); err != nil {
		return err
	}
	if w.skipped {
		return w.end()
	}
	if st, err := f.Stat(); err != nil || st.Size() < syncBytes {
		return err
	}
	return f.Sync()
}
