package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// The keys that make a file a shard.
const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

var shardName = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})\.gguf$`)

// ShardPath names shard i (from 0) of n: prefix-00001-of-00003.gguf for the first.
func ShardPath(prefix string, i, n int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, i+1, n)
}

// Open opens a file for reading. Any shard of a sharded model opens all of them, which
// lie side by side under the names that [ShardPath] gives.
func Open(path string) (*File, error) {
	f, err := openOne(path)
	if err != nil {
		return nil, err
	}
	n, ok := f.Int(keySplitCount)
	if !ok {
		if _, there := f.Get(keySplitCount); there {
			f.Close()
			return nil, inFile(path, badf(-1, "metadata "+keySplitCount, "no number", "how many shards there are"))
		}
		n = 1
	}
	if n <= 1 {
		f.dropSplit()
		return f, nil
	}
	whole, err := openShards(path, f, n)
	if err != nil {
		f.Close()
		return nil, err
	}
	return whole, nil
}

// openOne looks at what a path is before it opens it: a pipe would wait for a writer, and a device may do
// anything.
func openOne(path string) (*File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: found %s, want a regular file", path, kindOf(st.Mode()))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if st, err = file.Stat(); err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("open %s: found another file than a moment ago", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	f, err := Parse(file, st.Size())
	if err != nil {
		file.Close()
		return nil, inFile(path, err)
	}
	f.Paths, f.Infos = []string{path}, []fs.FileInfo{st}
	f.shards[0].closer = file
	return f, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// openShards opens the siblings of a shard and joins all. On an error it closes what it
// opened, and the caller closes the shard it brought.
func openShards(path string, got *File, n int64) (*File, error) {
	no, ok := got.Int(keySplitNo)
	if !ok || no < 0 || no >= n {
		return nil, inFile(path, badf(-1, "metadata "+keySplitNo, describe(got, keySplitNo), "0 to %d", n-1))
	}
	dir, base := filepath.Split(path)
	m := shardName.FindStringSubmatch(base)
	if m == nil || m[2] != fmt.Sprintf("%05d", no+1) || m[3] != fmt.Sprintf("%05d", n) {
		e := badf(-1, "name of a shard", strconv.Quote(base), "NAME%s", ShardPath("", int(no), int(n)))
		e.hint = "give the shard back the name it was published under"
		return nil, inFile(path, e)
	}
	var parts []*File
	fail := func(err error) (*File, error) {
		for _, p := range parts {
			if p != got {
				p.Close()
			}
		}
		return nil, err
	}
	for i := range int(n) {
		p := got
		if int64(i) != no {
			sibling := ShardPath(dir+m[1], i, int(n))
			var err error
			if p, err = openOne(sibling); err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return fail(&MissingShardError{Path: sibling, Shard: i + 1, Count: int(n)})
				}
				return fail(err)
			}
			parts = append(parts, p)
			if err := checkShard(p, i, n); err != nil {
				return fail(inFile(sibling, err))
			}
			continue
		}
		parts = append(parts, p)
	}
	whole, err := join(parts)
	if err != nil {
		return fail(err)
	}
	return whole, nil
}

func checkShard(f *File, i int, n int64) error {
	if c, ok := f.Int(keySplitCount); !ok || c != n {
		return badf(-1, "metadata "+keySplitCount, describe(f, keySplitCount), "%d as in the other shards", n)
	}
	if no, ok := f.Int(keySplitNo); !ok || no != int64(i) {
		return badf(-1, "metadata "+keySplitNo, describe(f, keySplitNo), "%d as the file's name says", i)
	}
	return nil
}

func describe(f *File, key string) string {
	if v, ok := f.Get(key); ok {
		return fmt.Sprint(v)
	}
	return "none"
}

// join makes one File of all shards, in order.
func join(parts []*File) (*File, error) {
	first := parts[0]
	whole := &File{Metadata: first.Metadata, Version: first.Version, Alignment: first.Alignment, index: map[string]int{}}
	for i, p := range parts {
		whole.Alignment = min(whole.Alignment, p.Alignment)
		whole.Paths, whole.Infos = append(whole.Paths, p.Paths...), append(whole.Infos, p.Infos...)
		whole.shards = append(whole.shards, p.shards...)
		for _, t := range p.Tensors {
			if _, found := whole.index[t.Name]; found {
				return nil, inFile(p.Paths[0], badf(t.Off, fmt.Sprintf("tensor %q", t.Name), "it in an earlier shard too", "it in one"))
			}
			t.Shard = i
			whole.index[t.Name] = len(whole.Tensors)
			whole.Tensors = append(whole.Tensors, t)
		}
	}
	n, ok := first.Int(keySplitTensors)
	if _, there := first.Get(keySplitTensors); there && (!ok || n != int64(len(whole.Tensors))) {
		return nil, inFile(first.Paths[0], badf(-1, "metadata "+keySplitTensors, describe(first, keySplitTensors),
			"the number of tensors in all shards, %d", len(whole.Tensors)))
	}
	whole.dropSplit()
	return whole, nil
}

// dropSplit forgets that there were shards: what is written from here on is whole.
func (f *File) dropSplit() {
	for _, k := range []string{keySplitNo, keySplitCount, keySplitTensors} {
		f.Delete(k)
	}
}

// MissingShardError names the shard that is not beside the others.
type MissingShardError struct {
	Path  string
	Shard int // from 1
	Count int
}

func (e *MissingShardError) Error() string {
	return fmt.Sprintf("open shard %d of %d: found no file %s", e.Shard, e.Count, e.Path)
}

// Unwrap makes errors.Is(err, fs.ErrNotExist) true.
func (e *MissingShardError) Unwrap() error { return fs.ErrNotExist }

// Hint says what to do.
func (e *MissingShardError) Hint() string {
	if halves, _ := filepath.Glob(e.Path + ".*"); len(halves) > 0 {
		return fmt.Sprintf("%s lies there: let its download finish, and give it its name", halves[0])
	}
	return fmt.Sprintf("put all %d shards into one folder", e.Count)
}
