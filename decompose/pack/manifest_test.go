package pack

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const sum = "aafb5183d46036b637467c45f51d9ecfd279954d5fc7b055801be496c3ae9556"

// valid is a small manifest with one of everything.
func valid() *Manifest {
	return &Manifest{FormatVersion: 1, Architecture: "llama", Files: []FileEntry{
		{Name: "metadata.gguf", Kind: Metadata, Layer: -1, Bytes: 77, SHA256: sum},
		{Name: "embed.bin", Kind: Embed, Layer: -1, Bytes: 4096, SHA256: sum, Tensors: []TensorEntry{
			{Name: "token_embd.weight", Type: "Q4_0", Shape: []int64{3, 32}, Bytes: 54},
		}},
		{Name: "layer_000.bin", Kind: Layer, Layer: 0, Bytes: 8192, SHA256: sum, Tensors: []TensorEntry{
			{Name: "blk.0.attn_norm.weight", Type: "F32", Shape: []int64{65}, Bytes: 260},
			{Name: "blk.0.attn_q.weight", Type: "F16", Shape: []int64{4, 500}, Offset: 512, Bytes: 4000},
		}},
		{Name: "experts_000.bin", Kind: Experts, Layer: 0, Bytes: 3 * 4096, SHA256: sum, Records: 3, RecordBytes: 4096, Tensors: []TensorEntry{
			{Name: "blk.0.ffn_up_exps.weight", Type: "F32", Shape: []int64{2, 2}, Bytes: 16},
			{Name: "blk.0.ffn_down_exps.weight", Type: "F32", Shape: []int64{2, 2}, Offset: 256, Bytes: 16},
		}},
	}}
}

func encode(t testing.TB, m *Manifest) []byte {
	t.Helper()
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestManifestAccepted(t *testing.T) {
	if _, err := ParseManifest(encode(t, valid())); err != nil {
		t.Error(err)
	}
	withNew := strings.Replace(string(encode(t, valid())), `"files"`, `"of_a_later_minor": 1, "files"`, 1)
	if _, err := ParseManifest([]byte(withNew)); err != nil {
		t.Errorf("an unknown field: %v", err)
	}
}

func TestManifestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(m *Manifest)
		want   string
	}{
		{"escape", func(m *Manifest) { m.Files[1].Name = "../embed.bin" }, `wanted "embed.bin"`},
		{"absolute", func(m *Manifest) { m.Files[1].Name = "/etc/passwd" }, `wanted "embed.bin"`},
		{"other layer's name", func(m *Manifest) { m.Files[2].Name = "layer_001.bin" }, `wanted "layer_000.bin"`},
		{"file twice", func(m *Manifest) { m.Files = append(m.Files, m.Files[1]) }, `found "embed.bin" twice`},
		{"no metadata", func(m *Manifest) { m.Files = m.Files[1:] }, `found no "metadata.gguf"`},
		{"metadata with tensors", func(m *Manifest) { m.Files[0].Tensors = m.Files[1].Tensors }, "wanted some and none"},
		{"empty metadata", func(m *Manifest) { m.Files[0].Bytes = 0 }, "wanted some and none"},
		{"unknown kind", func(m *Manifest) { m.Files[1].Kind = "embod" }, "kind: found"},
		{"layer of none", func(m *Manifest) { m.Files[1].Layer = 0 }, "wanted -1"},
		{"negative layer", func(m *Manifest) { m.Files[2].Layer = -1 }, "layer: found -1"},
		{"short checksum", func(m *Manifest) { m.Files[1].SHA256 = "aa" }, "64 hex digits"},
		{"checksum of letters", func(m *Manifest) { m.Files[1].SHA256 = strings.Repeat("z", 64) }, "64 hex digits"},
		{"no tensors", func(m *Manifest) { m.Files[1].Tensors = nil }, "tensors: found none"},
		{"unknown type", func(m *Manifest) { m.Files[1].Tensors[0].Type = "Q9_9" }, `found "Q9_9"`},
		{"five dimensions", func(m *Manifest) { m.Files[1].Tensors[0].Shape = []int64{1, 1, 1, 3, 32} }, "found 5 dimensions"},
		{"part of a block", func(m *Manifest) { m.Files[1].Tensors[0].Shape = []int64{3, 33} }, "multiple of 32"},
		{"negative dimension", func(m *Manifest) { m.Files[2].Tensors[0].Shape = []int64{-1, 65} }, "found shape"},
		{"huge shape", func(m *Manifest) { m.Files[2].Tensors[0].Shape = []int64{1 << 40, 1 << 40} }, "found shape"},
		{"huge row", func(m *Manifest) { m.Files[2].Tensors[0].Shape = []int64{1<<63 - 1} }, "size of a row"},
		{"other bytes", func(m *Manifest) { m.Files[1].Tensors[0].Bytes = 55 }, "found 55 bytes, wanted 54"},
		{"offset not aligned", func(m *Manifest) { m.Files[2].Tensors[1].Offset = 500 }, "found offset 500, wanted 512"},
		{"overlap", func(m *Manifest) { m.Files[2].Tensors[1].Offset = 256 }, "found offset 256, wanted 512"},
		{"hole", func(m *Manifest) { m.Files[2].Tensors[1].Offset = 4096 }, "found offset 4096, wanted 512"},
		{"negative offset", func(m *Manifest) { m.Files[2].Tensors[0].Offset = -256 }, "found offset -256, wanted 0"},
		{"tensor twice", func(m *Manifest) { m.Files[2].Tensors[1].Name = m.Files[2].Tensors[0].Name }, "twice"},
		{"tensor of another layer", func(m *Manifest) { m.Files[2].Tensors[0].Name = "blk.1.attn_norm.weight" }, `wanted in "layer_001.bin"`},
		{"experts in a layer", func(m *Manifest) { m.Files[2].Tensors[0].Name = "blk.0.ffn_gate_exps.weight" }, `wanted in "experts_000.bin"`},
		{"layer in experts", func(m *Manifest) { m.Files[3].Tensors[0].Name = "blk.0.ffn_up.weight" }, `wanted in "layer_000.bin"`},
		{"size not padded", func(m *Manifest) { m.Files[1].Bytes = 54 }, "bytes: found 54, wanted 4096"},
		{"no records", func(m *Manifest) { m.Files[3].Records = 0 }, "records: found 0"},
		{"too many records", func(m *Manifest) { m.Files[3].Records = 1 << 17; m.Files[3].Bytes = 4096 << 17 }, "records: found 131072"},
		{"other record size", func(m *Manifest) { m.Files[3].RecordBytes = 8192 }, "record_bytes: found 8192"},
		{"other number of records", func(m *Manifest) { m.Files[3].Records = 2 }, "bytes: found 12288, wanted 8192"},
		{"records in a layer", func(m *Manifest) { m.Files[2].Records = 1 }, "wanted none here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := valid()
			c.change(m)
			_, err := ParseManifest(encode(t, m))
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, wanted an ErrFormat that says %q", err, c.want)
			}
		})
	}
}

func TestManifestNotJSON(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "no valid JSON"},
		{"list", "[1]", "no valid JSON"},
		{"cut", string(encode(t, valid()))[:900], "no valid JSON"},
		{"no version", "{}", "format_version: found none"},
		{"version 0", `{"format_version": 0}`, "format_version: found 0"},
		{"newer", `{"format_version": 3, "files": "another way"}`, "format_version: found 3, wanted 1 or 2"},
		{"stripes without version", `{"format_version": 1, "stripe": {"bytes": 4096, "folders": ["/x"], "id": "y"}}`, "wanted 2 with stripe"},
		{"version without stripes", `{"format_version": 2}`, "wanted 2 with stripe"},
		{"odd stripes", `{"format_version": 2, "stripe": {"bytes": 5000, "folders": ["/x"], "id": "y"}}`, "wanted a multiple of 4096"},
		{"no stripe", `{"format_version": 2, "stripe": {"bytes": 0, "folders": ["/x"], "id": "y"}}`, "wanted a multiple of 4096"},
		{"no folders", `{"format_version": 2, "stripe": {"bytes": 4096, "id": "y"}}`, "folders: found 0"},
		{"a folder twice", `{"format_version": 2, "stripe": {"bytes": 4096, "folders": ["/x", "/x"], "id": "y"}}`, "twice"},
		{"no id", `{"format_version": 2, "stripe": {"bytes": 4096, "folders": ["/x"]}}`, "id: found none"},
		{"other shape", `{"format_version": 1, "files": 7}`, "another shape"},
		{"null files", `{"format_version": 1, "files": null}`, `found no "metadata.gguf"`},
		{"huge number", `{"format_version": 1, "num_layers": 1e99}`, "another shape"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseManifest([]byte(c.text))
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, wanted an ErrFormat that says %q", err, c.want)
			}
		})
	}
}

// Whatever is accepted must be safe to make units of: aligned, in bounds, without overlap.
func FuzzManifest(f *testing.F) {
	f.Add(encode(f, valid()))
	small, err := json.Marshal(valid())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(small)
	f.Add([]byte(`{"format_version": 1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("found an error that is no ErrFormat: %v", err)
			}
			return
		}
		for i := range m.Files {
			checkFuzzed(t, &m.Files[i])
		}
		if _, err := ParseManifest(encode(t, m)); err != nil {
			t.Fatalf("accepted, but not after writing it again: %v", err)
		}
	})
}

func checkFuzzed(t *testing.T, f *FileEntry) {
	if strings.ContainsAny(f.Name, `/\:`) || strings.HasPrefix(f.Name, ".") {
		t.Fatalf("accepted name %q", f.Name)
	}
	if f.Kind == Metadata {
		return
	}
	end := int64(0)
	for _, x := range f.Tensors {
		if x.Offset < end || x.Offset%TensorAlign != 0 || x.Bytes < 0 || x.Offset+x.Bytes < x.Offset {
			t.Fatalf("%s: accepted tensor %+v after %d", f.Name, x, end)
		}
		end = x.Offset + x.Bytes
	}
	records, stride := int64(1), f.Bytes
	if f.Kind == Experts {
		records, stride = f.Records, f.RecordBytes
	}
	if end > stride || stride%FileAlign != 0 || records*stride != f.Bytes || f.Bytes < 0 {
		t.Fatalf("%s: accepted %d records of %d bytes in %d, with tensors to %d", f.Name, records, stride, f.Bytes, end)
	}
}
