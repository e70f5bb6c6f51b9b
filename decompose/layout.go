package decompose

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"unicode/utf8"

	"leat/decompose/pack"
	"leat/gguf"
)

// segment is a run of source bytes and where it goes in a file of the pack.
type segment struct {
	Off   int64 // in the pack's file
	Bytes int64
	File  int // of the source
	Src   int64
}

// outFile is one file of the pack: its entry in the manifest and where its bytes come from. Between
// the segments it is zero.
type outFile struct {
	*pack.FileEntry
	segments []segment // by rising Off
	content  []byte    // instead of segments
	finished bool
}

// layout is all that will be written, less the manifest's checksums.
type layout struct {
	manifest *pack.Manifest
	files    []*outFile
	sources  []sourceID
	hash     string // of everything that decides the files' bytes, but the source's tensor data
}

// sourceID tells whether a source file is still the same.
type sourceID struct {
	Bytes int64 `json:"bytes"`
	MTime int64 `json:"mtime_ns"`
}

func newLayout(src *pack.Model) (*layout, error) {
	l := &layout{manifest: &pack.Manifest{}}
	m := l.manifest
	m.Summarize(src.Metadata, src.Units)
	var err error
	if l.sources, err = identify(src.Files); err != nil {
		return nil, err
	}
	for i, path := range src.Files {
		m.Source = append(m.Source, pack.Source{Name: filepath.Base(path), Bytes: l.sources[i].Bytes})
	}
	if err := l.addMetadata(src.Metadata); err != nil {
		return nil, err
	}
	for i := 0; i < len(src.Units); {
		n := 1
		for src.Units[i].Kind == pack.Experts && i+n < len(src.Units) && src.Units[i+n].Kind == pack.Experts && src.Units[i+n].Layer == src.Units[i].Layer {
			n++
		}
		if err := l.addUnits(src.Units[i : i+n]); err != nil {
			return nil, err
		}
		i += n
	}
	for _, f := range l.files {
		m.Files = append(m.Files, *f.FileEntry)
		m.TotalBytes += f.Bytes
		switch f.Kind {
		case pack.Layer:
			m.LayerFileSize = max(m.LayerFileSize, f.Bytes)
		case pack.Experts:
			m.ExpertRecordSize = max(m.ExpertRecordSize, f.RecordBytes)
		}
	}
	for i, f := range l.files {
		f.FileEntry = &m.Files[i]
	}
	l.hash, err = l.digest()
	return l, err
}

// addMetadata plans metadata.gguf: all keys, no tensors. How tensors lay in the source (its
// alignment) says nothing here, but users may look for it: it stays.
func (l *layout) addMetadata(md *gguf.Metadata) error {
	var b bytes.Buffer
	if err := gguf.Write(&b, md, nil, gguf.WriteOptions{}); err != nil {
		return fmt.Errorf("make %s: %w", pack.MetadataName, err)
	}
	l.files = append(l.files, &outFile{
		FileEntry: &pack.FileEntry{Name: pack.MetadataName, Kind: pack.Metadata, Layer: -1, Bytes: int64(b.Len()), Tensors: []pack.TensorEntry{}},
		content:   b.Bytes(),
	})
	return nil
}

// addUnits plans one file: of one unit, or of all experts of a layer as records.
func (l *layout) addUnits(units []pack.Unit) error {
	u := &units[0]
	f := &outFile{FileEntry: &pack.FileEntry{Name: pack.FileName(u.Kind, u.Layer), Kind: u.Kind, Layer: u.Layer}}
	end := int64(0)
	for _, t := range u.Tensors {
		if !utf8.ValidString(t.Name) {
			return fmt.Errorf("tensor %q: found a name that is not UTF-8, which %s can't hold", t.Name, pack.ManifestName)
		}
		f.Tensors = append(f.Tensors, pack.TensorEntry{Name: t.Name, Type: t.Type.String(), Shape: t.Shape, Offset: t.UnitOff, Bytes: t.Bytes})
		end = t.UnitOff + t.Bytes
	}
	record := alignUp(end, pack.FileAlign)
	f.Bytes = record * int64(len(units))
	if u.Kind == pack.Experts {
		f.Records, f.RecordBytes = int64(len(units)), record
	}
	for i := range units {
		for _, t := range units[i].Tensors {
			if t.Bytes > 0 {
				f.segments = append(f.segments, segment{Off: int64(i)*record + t.UnitOff, Bytes: t.Bytes, File: t.File, Src: t.Off})
			}
		}
	}
	l.files = append(l.files, f)
	return nil
}

// spread makes the pack one of several folders.
func (l *layout) spread(s *pack.Stripe) (err error) {
	l.manifest.Stripe, l.manifest.FormatVersion = s, pack.StripedVersion
	l.hash, err = digestOf(l.hash, s)
	return err
}

// digestOf is a hash of values.
func digestOf(values ...any) (string, error) {
	b, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("describe the layout: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// digest identifies the layout: a resume with another one would mix two packs.
func (l *layout) digest() (string, error) {
	h := sha256.New()
	e := json.NewEncoder(h)
	for _, f := range l.files {
		if err := e.Encode(f.FileEntry); err != nil {
			return "", fmt.Errorf("describe %s: %w", f.Name, err)
		}
		if err := e.Encode(f.segments); err != nil {
			return "", fmt.Errorf("describe %s: %w", f.Name, err)
		}
		h.Write(f.content)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fill makes p the file's bytes from off on.
func (f *outFile) fill(src *pack.Model, p []byte, off int64) error {
	if f.content != nil {
		copy(p, f.content[off:])
		return nil
	}
	clear(p)
	end := off + int64(len(p))
	first := sort.Search(len(f.segments), func(i int) bool { return f.segments[i].Off+f.segments[i].Bytes > off })
	for _, s := range f.segments[first:] {
		if s.Off >= end {
			break
		}
		from, to := max(s.Off, off), min(s.Off+s.Bytes, end)
		if err := src.ReadAt(s.File, p[from-off:to-off], s.Src+from-s.Off); err != nil {
			return err
		}
	}
	return nil
}

func identify(paths []string) ([]sourceID, error) {
	ids := make([]sourceID, len(paths))
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("look at source: %w", err)
		}
		ids[i] = sourceID{Bytes: info.Size(), MTime: info.ModTime().UnixNano()}
	}
	return ids, nil
}

func alignUp(n, align int64) int64 { return (n + align - 1) / align * align }
