package gguf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// TensorInfo says what a tensor is and where its bytes lie.
type TensorInfo struct {
	Name  string
	Type  Type
	Shape []int64 // outermost first: the flip of GGUF's order happens here only
	Bytes int64
	Shard int   // index into File.Paths
	Off   int64 // absolute, in that shard's file
}

// File is an opened model: one file, or all the shards of one.
//
// The metadata are the first shard's. What tells shards apart (split.no, split.count,
// split.tensors.count) is gone from them: the File is whole.
type File struct {
	*Metadata
	Version   int   // 2 or 3
	Alignment int64 // of tensor offsets; the smallest where shards differ
	Tensors   []TensorInfo
	Paths     []string      // one a shard; empty from Parse
	Infos     []fs.FileInfo // of each, as it was opened

	index  map[string]int // name → Tensors
	shards []shard
}

type shard struct {
	r      io.ReaderAt
	size   int64
	closer io.Closer
}

// Tensor finds a tensor by name. The result points into f.Tensors.
func (f *File) Tensor(name string) (*TensorInfo, bool) {
	i, ok := f.index[name]
	if !ok {
		return nil, false
	}
	return &f.Tensors[i], true
}

// ReadAt fills p from the shard's file at off, or fails.
func (f *File) ReadAt(shard int, p []byte, off int64) error {
	if shard < 0 || shard >= len(f.shards) {
		return fmt.Errorf("read: found shard %d, want one of %d", shard, len(f.shards))
	}
	s := f.shards[shard]
	if s.r == nil {
		return fmt.Errorf("read %s: %w", f.shardName(shard), os.ErrClosed)
	}
	n, err := s.r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %s: found %d bytes at offset %d, want %d: %w", f.shardName(shard), n, off, len(p), err)
}

// ReadTensor reads a tensor's bytes.
func (f *File) ReadTensor(t *TensorInfo) ([]byte, error) {
	p := make([]byte, t.Bytes)
	if err := f.ReadAt(t.Shard, p, t.Off); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return p, nil
}

func (f *File) shardName(i int) string {
	if i < len(f.Paths) {
		return f.Paths[i]
	}
	return "GGUF"
}

// Close closes the files. It may be called twice.
func (f *File) Close() error {
	var errs []error
	for i := range f.shards {
		if c := f.shards[i].closer; c != nil {
			errs = append(errs, c.Close())
		}
		f.shards[i] = shard{size: f.shards[i].size}
	}
	return errors.Join(errs...)
}
