package gguf

import (
	"bytes"
	"fmt"
	"io"
)

// otherBlock is a block that a fork of llama.cpp has written under a number that now means another type.
type otherBlock struct {
	values, bytes int64
	hint          string
}

// reused are the numbers that forks have given to types of their own. nil: which blocks those have is not known.
var reused = map[Type][]otherBlock{
	MXFP4: nil,
	NVFP4: {{32, 6, "these are blocks of 32 values in 6 bytes, by a fork of llama.cpp: convert the model again, as Q1_0"}},
	Q1_0:  nil,
	Q2_0:  {{128, 34, "these are blocks of 128 values in 34 bytes, by a fork of llama.cpp: take a file with blocks of 64 values, often named Q2_0_g64, or convert the model again"}},
}

// checkExtents refuses a file whose tensors of a reused number have another size than their type: a fork's blocks would load, and be nonsense. A tensor
// ends where the next one begins, but for padding. byOff are all tensors by their offsets, which count from start.
func checkExtents(r io.ReaderAt, byOff []*TensorInfo, start, size, alignment int64) error {
	var worst *TensorInfo // the largest of another size, for small tensors are padded to the same
	var extent int64      // of worst
	for i, t := range byOff {
		other, isReused := reused[t.Type]
		found, last := size-start-t.Off, i == len(byOff)-1 // bytes up to the next tensor
		if !last {
			found = byOff[i+1].Off - t.Off
		}
		if !isReused || !last && found == align(t.Bytes, alignment) || last && plausibleEnd(r, t, other, start, found, alignment) {
			continue
		}
		if worst == nil || t.Bytes > worst.Bytes {
			worst, extent = t, found
		}
	}
	if worst == nil {
		return nil
	}
	row := worst.Type.row()
	e := badf(-1, fmt.Sprintf("tensor %q of type %d", worst.Name, uint32(worst.Type)), fmt.Sprintf("%d bytes", extent),
		"%d of %s (%d values in %d bytes)", align(worst.Bytes, alignment), row.name, row.values, row.bytes)
	e.hint = "a fork of llama.cpp may have given this number to another type: convert the model again with llama.cpp"
	for _, o := range reused[worst.Type] {
		if o.fits(worst, extent, alignment) {
			e.hint = o.hint
		}
	}
	return e
}

// fits reports whether a tensor has so many bytes if its blocks are o.
func (o otherBlock) fits(t *TensorInfo, bytes, alignment int64) bool {
	row := t.Type.row()
	n := t.Bytes / int64(row.bytes) * int64(row.values) / o.values * o.bytes
	return bytes >= n && bytes-n < alignment
}

// plausibleEnd reports whether the last tensor of a file, with so many bytes behind its beginning, is of its type as far as one can tell: too few
// bytes are a download that has not ended, unless another block fits, and behind it are zeros at most.
func plausibleEnd(r io.ReaderAt, t *TensorInfo, other []otherBlock, start, found, alignment int64) bool {
	if found < t.Bytes {
		for _, o := range other {
			if o.fits(t, found, alignment) {
				return false
			}
		}
		return true
	}
	if found-t.Bytes < alignment {
		return true
	}
	rest := make([]byte, min(found-t.Bytes, 1<<12))
	n, _ := r.ReadAt(rest, start+t.Off+t.Bytes) // what can't be read is found later
	return len(bytes.Trim(rest[:n], "\x00")) == 0 || bytes.Contains(rest[:n], []byte(magic))
}
