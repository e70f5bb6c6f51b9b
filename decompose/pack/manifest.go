package pack

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"leat/gguf"
)

const (
	ManifestName   = "manifest.json"
	MetadataName   = "metadata.gguf"
	PartialSuffix  = ".partial" // of the folder a pack is written in until it is whole
	FormatVersion  = 1          // of a pack in one folder
	StripedVersion = 2          // of one in several: a reader that knows no stripes must refuse it

	maxManifest = 64 << 20 // bytes; a real one has some hundred KiB
)

// Manifest is manifest.json: what the model is, and for every file its size, checksum and tensors.
// The figures are for people and scripts; we run a model by metadata.gguf.
type Manifest struct {
	FormatVersion    int         `json:"format_version"`
	Model            string      `json:"model"`
	Architecture     string      `json:"architecture"`
	NumLayers        int64       `json:"num_layers"`
	HiddenDim        int64       `json:"hidden_dim"`
	NumHeads         int64       `json:"num_heads"`    // where layers differ, the most
	NumKVHeads       int64       `json:"num_kv_heads"` // likewise
	HeadDim          int64       `json:"head_dim"`
	IntermediateDim  int64       `json:"intermediate_dim"` // of the dense FFN; where layers differ, the most
	VocabSize        int64       `json:"vocab_size"`
	MaxContext       int64       `json:"max_context"`
	Quantization     string      `json:"quantization"`                 // the file's own name for it (Q4_K_M), or the type most bytes have
	LayerFileSize    int64       `json:"layer_file_size"`              // bytes of the largest layer_NNN.bin
	ExpertRecordSize int64       `json:"expert_record_size,omitempty"` // bytes of the largest expert record
	RopeTheta        float64     `json:"rope_theta,omitempty"`         // absent: the GGUF does not say
	RMSNormEps       float64     `json:"rms_norm_eps,omitempty"`       // likewise
	NumExperts       int64       `json:"num_experts"`                  // 0: dense
	NumExpertsUsed   int64       `json:"num_experts_used,omitempty"`
	TiedEmbeddings   bool        `json:"tied_embeddings"`  // there is no lm_head.bin
	TotalBytes       int64       `json:"total_bytes"`      // of all files, without this one
	Stripe           *Stripe     `json:"stripe,omitempty"` // nil: all in one folder
	Source           []Source    `json:"source"`           // the GGUF it was made from
	Files            []FileEntry `json:"files"`            // execution order
}

// Source is one file of the GGUF a pack was made from.
type Source struct {
	Name  string `json:"name"` // without folder
	Bytes int64  `json:"bytes"`
}

// FileEntry is one file of a pack.
type FileEntry struct {
	Name        string        `json:"name"` // FileName(Kind, Layer): there is no other
	Kind        Kind          `json:"kind"`
	Layer       int           `json:"layer"` // -1 where not meaningful
	Bytes       int64         `json:"bytes"`
	SHA256      string        `json:"sha256"`
	Records     int64         `json:"records,omitempty"`      // experts only: how many
	RecordBytes int64         `json:"record_bytes,omitempty"` // from one record to the next; multiple of FileAlign
	Tensors     []TensorEntry `json:"tensors"`                // of a record for experts, else of the file
}

// TensorEntry is one tensor of a file, or of each record of an experts file.
type TensorEntry struct {
	Name   string  `json:"name"`   // as in the GGUF
	Type   string  `json:"type"`   // as ggml names it
	Shape  []int64 `json:"shape"`  // outermost dimension first; of one expert
	Offset int64   `json:"offset"` // in the file or record; multiple of TensorAlign
	Bytes  int64   `json:"bytes"`
}

// FileName is the one name a file of this kind may have.
func FileName(kind Kind, layer int) string {
	switch kind {
	case Metadata:
		return MetadataName
	case Layer, Experts:
		return fmt.Sprintf("%s_%03d.bin", kind, layer)
	}
	return string(kind) + ".bin"
}

// Encode is the file's content.
func (m *Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(m); err != nil {
		return nil, fmt.Errorf("encode %s: %w", ManifestName, err)
	}
	return numberLists.ReplaceAllFunc(b.Bytes(), func(list []byte) []byte {
		return bytes.Join(bytes.Fields(list), nil)
	}), nil
}

// numberLists finds shapes, which read better on one line. A string holds no bare newline.
var numberLists = regexp.MustCompile(`\[\n\s*\d+(,\n\s*\d+)*\n\s*\]`)

// ReadManifest reads and checks dir's manifest.json: all but what only the other files can tell.
func ReadManifest(dir string) (*Manifest, error) {
	if strings.HasSuffix(filepath.Clean(dir), PartialSuffix) {
		e := formatErrorf(dir, "found an unfinished pack, wanted a whole one")
		e.hint = "run the same leat decompose again: it resumes, and renames the folder when it is done"
		return nil, e
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, openError(dir, err)
	case !info.IsDir():
		e := formatErrorf(dir, "found a file, wanted the folder of a pack")
		e.hint = "make one with: leat decompose MODEL.gguf OUTDIR"
		return nil, e
	}
	path := filepath.Join(dir, ManifestName)
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		e := formatErrorf(dir, "found no %s, wanted a pack", ManifestName)
		e.hint = FolderHint(dir)
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return parseManifest(path, data)
}

// ParseManifest reads and checks the content of a manifest.json.
func ParseManifest(data []byte) (*Manifest, error) { return parseManifest(ManifestName, data) }

func parseManifest(path string, data []byte) (*Manifest, error) {
	if len(data) > maxManifest {
		return nil, formatErrorf(path, "found over %d MiB, wanted less", maxManifest>>20)
	}
	var v struct {
		FormatVersion *int `json:"format_version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, formatErrorf(path, "found no valid JSON: %v", err)
	}
	if v.FormatVersion == nil || *v.FormatVersion != FormatVersion && *v.FormatVersion != StripedVersion {
		found := "none"
		if v.FormatVersion != nil {
			found = fmt.Sprint(*v.FormatVersion)
		}
		e := formatErrorf(path, "format_version: found %s, wanted %d or %d", found, FormatVersion, StripedVersion)
		if v.FormatVersion != nil && *v.FormatVersion > StripedVersion {
			e.hint = "the pack was made by a newer leat: update, or decompose the GGUF again with this one"
		}
		return nil, e
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, formatErrorf(path, "found JSON of another shape: %v", err)
	}
	if err := m.check(path); err != nil {
		return nil, err
	}
	return m, nil
}

// check holds every file entry against the format.
func (m *Manifest) check(path string) error {
	if (m.Stripe != nil) != (m.FormatVersion == StripedVersion) {
		return formatErrorf(path, "format_version: found %d, wanted %d with stripe and %d without", m.FormatVersion, StripedVersion, FormatVersion)
	}
	if m.Stripe != nil {
		if err := m.Stripe.check(); err != nil {
			return formatErrorf(path, "stripe: %v", err)
		}
	}
	names := map[string]bool{}
	tensors := map[string]bool{}
	slices := int64(0)
	for i := range m.Files {
		f := &m.Files[i]
		if names[f.Name] {
			return formatErrorf(path, "files[%d]: found %q twice", i, f.Name)
		}
		names[f.Name] = true
		if err := f.check(); err != nil {
			return formatErrorf(path, "files[%d] %q: %v", i, f.Name, err)
		}
		slices += int64(len(f.Tensors)) * max(f.Records, 1)
		if slices > maxTensors {
			return formatErrorf(path, "files[%d] %q: found over %d tensors and expert slices, wanted less", i, f.Name, maxTensors)
		}
		for _, t := range f.Tensors {
			if tensors[t.Name] {
				return formatErrorf(path, "files[%d] %q: found tensor %q twice", i, f.Name, t.Name)
			}
			tensors[t.Name] = true
		}
	}
	if !names[MetadataName] {
		return formatErrorf(path, "files: found no %q", MetadataName)
	}
	return nil
}

func (f *FileEntry) check() error {
	switch f.Kind {
	case Metadata, Embed, Global, Norm, Head:
		if f.Layer != -1 {
			return fmt.Errorf("layer: found %d, wanted -1", f.Layer)
		}
	case Layer, Experts:
		if f.Layer < 0 || f.Layer > maxLayer {
			return fmt.Errorf("layer: found %d, wanted 0 to %d", f.Layer, maxLayer)
		}
	default:
		return fmt.Errorf("kind: found %q, wanted one of this format's", f.Kind)
	}
	if want := FileName(f.Kind, f.Layer); f.Name != want {
		return fmt.Errorf("name: wanted %q", want)
	}
	if h, err := hex.DecodeString(f.SHA256); err != nil || len(h) != 32 {
		return fmt.Errorf("sha256: found %q, wanted 64 hex digits", f.SHA256)
	}
	if f.Kind == Metadata {
		if len(f.Tensors) > 0 || f.Records != 0 || f.Bytes < 1 {
			return fmt.Errorf("found %d bytes and %d tensors, wanted some and none", f.Bytes, len(f.Tensors))
		}
		return nil
	}
	end, err := f.checkTensors()
	if err != nil {
		return err
	}
	size := alignUp(end, FileAlign)
	if f.Kind == Experts {
		if f.Records < 1 || f.Records > maxExperts {
			return fmt.Errorf("records: found %d, wanted 1 to %d", f.Records, maxExperts)
		}
		if f.RecordBytes != size {
			return fmt.Errorf("record_bytes: found %d, wanted %d", f.RecordBytes, size)
		}
		if size > (1<<62)/f.Records {
			return fmt.Errorf("found %d records of %d bytes, wanted under 2⁶² bytes", f.Records, size)
		}
		size *= f.Records
	} else if f.Records != 0 || f.RecordBytes != 0 {
		return fmt.Errorf("records: found %d of %d bytes, wanted none here", f.Records, f.RecordBytes)
	}
	if f.Bytes != size {
		return fmt.Errorf("bytes: found %d, wanted %d", f.Bytes, size)
	}
	return nil
}

// checkTensors holds the tensors against the format and returns where the last one ends. Each starts
// on the first multiple of TensorAlign after the one before, so none overlap and no hole is large.
func (f *FileEntry) checkTensors() (end int64, err error) {
	if len(f.Tensors) == 0 {
		return 0, fmt.Errorf("tensors: found none")
	}
	for _, t := range f.Tensors {
		typ, err := gguf.ParseType(t.Type)
		if err != nil {
			return 0, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if len(t.Shape) > maxDims {
			return 0, fmt.Errorf("tensor %q: found %d dimensions, wanted at most %d", t.Name, len(t.Shape), maxDims)
		}
		size, err := tensorBytes(typ, t.Shape)
		if err != nil {
			return 0, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if t.Bytes != size {
			return 0, fmt.Errorf("tensor %q: found %d bytes, wanted %d for %v of shape %v", t.Name, t.Bytes, size, typ, t.Shape)
		}
		kind, layer := classify(t.Name)
		stays := kind == Experts && f.Kind == Layer && !isWeight(t.Name) // see splitExperts
		if layer != f.Layer || (kind != f.Kind && !stays) {
			return 0, fmt.Errorf("tensor %q: found in %q, wanted in %q", t.Name, f.Name, FileName(kind, layer))
		}
		if want := alignUp(end, TensorAlign); t.Offset != want {
			return 0, fmt.Errorf("tensor %q: found offset %d, wanted %d: the next multiple of %d", t.Name, t.Offset, want, TensorAlign)
		}
		end = t.Offset + t.Bytes
		if end > 1<<62 {
			return 0, fmt.Errorf("tensor %q: found its end at %d, wanted under 2⁶²", t.Name, end)
		}
	}
	return end, nil
}
