package pack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leat/gguf"
	"leat/tools/testdata"
)

func openModel(t testing.TB, path string) *Model {
	t.Helper()
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func realModel(t testing.TB, name string) *Model {
	return openModel(t, filepath.Join(testdata.Dir(t), "models", name))
}

// shorts is a unit's tensors without layer and ".weight".
func shorts(u *Unit) string {
	var names []string
	for _, t := range u.Tensors {
		if _, rest, ok := splitLayer(t.Name); ok {
			names = append(names, strings.TrimSuffix(rest, ".weight"))
		} else {
			names = append(names, strings.TrimSuffix(t.Name, ".weight"))
		}
	}
	return strings.Join(names, " ")
}

func TestExecutionOrder(t *testing.T) {
	const mixtral = `embed: token_embd
layer 0: attn_norm attn_q attn_k attn_v attn_output ffn_norm ffn_gate_inp
layer 0 expert 0: ffn_gate_exps ffn_up_exps ffn_down_exps
layer 0 expert 1: ffn_gate_exps ffn_up_exps ffn_down_exps
layer 0 expert 2: ffn_gate_exps ffn_up_exps ffn_down_exps
layer 0 expert 3: ffn_gate_exps ffn_up_exps ffn_down_exps
layer 1: attn_norm attn_q attn_k attn_v attn_output ffn_norm ffn_gate_inp
`
	for _, c := range []struct{ model, want string }{
		{"mixtral-tiny-q4_k_m.gguf", mixtral},
		{"qwen2-tiny-q8_0.gguf", "embed: token_embd\nlayer 0: attn_norm attn_q attn_q.bias attn_k attn_k.bias attn_v attn_v.bias attn_output ffn_norm ffn_gate ffn_up ffn_down\n"},
		{"gemma3-tiny-q8_0.gguf", "embed: token_embd\nlayer 0: attn_norm attn_q attn_k attn_v attn_q_norm attn_k_norm attn_output post_attention_norm ffn_norm ffn_gate ffn_up ffn_down post_ffw_norm\n"},
		{"llama3-tiny-q8_0.gguf", "embed: token_embd\nglobal: rope_freqs\nlayer 0: attn_norm attn_q attn_k attn_v attn_output ffn_norm ffn_gate ffn_up ffn_down\n"},
	} {
		t.Run(c.model, func(t *testing.T) {
			m := realModel(t, c.model)
			var got strings.Builder
			for i := range m.Units {
				fmt.Fprintf(&got, "%s: %s\n", m.Units[i].Name, shorts(&m.Units[i]))
			}
			if !strings.HasPrefix(got.String(), c.want) {
				t.Errorf("found:\n%s\nwanted it to begin:\n%s", got.String(), c.want)
			}
			if n := len(m.Units); m.Units[n-1].Kind != Head && m.Units[n-1].Kind != Norm {
				t.Errorf("found %s last", m.Units[n-1].Name)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  Kind
		layer int
	}{
		{"token_embd.weight", Embed, -1},
		{"token_embd_norm.weight", Global, -1},
		{"output.weight", Head, -1},
		{"output.bias", Global, -1},
		{"output_norm.weight", Norm, -1},
		{"output_norm.bias", Norm, -1},
		{"rope_freqs.weight", Global, -1},
		{"blk.0.attn_q.weight", Layer, 0},
		{"blk.123456.x", Layer, 123456},
		{"blk.3.ffn_up_exps.weight", Experts, 3},
		{"blk.3.ffn_gate_up_exps.bias", Experts, 3},
		{"blk.3.ffn_up_shexp.weight", Layer, 3},
		{"blk.3.exp_probs_b.bias", Layer, 3},
		{"blk.03.attn_q.weight", Global, -1},
		{"blk.-3.attn_q.weight", Global, -1},
		{"blk.+3.attn_q.weight", Global, -1},
		{"blk.1000000.attn_q.weight", Global, -1},
		{"blk.3.", Global, -1},
		{"enc.blk.3.attn_q.weight", Global, -1},
		{"", Global, -1},
	} {
		if kind, layer := classify(c.name); kind != c.kind || layer != c.layer {
			t.Errorf("%q: found %s of layer %d, wanted %s of layer %d", c.name, kind, layer, c.kind, c.layer)
		}
	}
}

func TestExtents(t *testing.T) {
	for _, c := range []struct {
		name    string
		tensors []Tensor
		want    []Extent
	}{
		{"none", nil, nil},
		{"one", []Tensor{{Off: 64, Bytes: 100}}, []Extent{{Off: 64, Bytes: 100}}},
		{"same distance", []Tensor{{Off: 32, Bytes: 200}, {Off: 288, Bytes: 50, UnitOff: 256}}, []Extent{{Off: 32, Bytes: 306}}},
		{"closer on disk", []Tensor{{Off: 32, Bytes: 200}, {Off: 256, Bytes: 50, UnitOff: 256}}, []Extent{{Off: 32, Bytes: 200}, {Off: 256, UnitOff: 256, Bytes: 50}}},
		{"other file", []Tensor{{Bytes: 256}, {File: 1, Off: 256, Bytes: 50, UnitOff: 256}}, []Extent{{Bytes: 256}, {File: 1, Off: 256, UnitOff: 256, Bytes: 50}}},
		{"before it on disk", []Tensor{{Off: 512, Bytes: 256}, {Off: 0, Bytes: 256, UnitOff: 256}}, []Extent{{Off: 512, Bytes: 256}, {UnitOff: 256, Bytes: 256}}},
		{"overlapping on disk", []Tensor{{Off: 0, Bytes: 300}, {Off: 256, Bytes: 50, UnitOff: 256}}, []Extent{{Bytes: 300}, {Off: 256, UnitOff: 256, Bytes: 50}}},
		{"empty", []Tensor{{Bytes: 256}, {Off: 7, UnitOff: 256}, {Off: 256, Bytes: 9, UnitOff: 256}}, []Extent{{Bytes: 265}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, extents(c.tensors)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRows(t *testing.T) {
	m := realModel(t, "mixtral-tiny-q4_k_m.gguf")
	head, ok := m.Unit(Head, -1)
	if !ok {
		t.Fatal("found no lm_head")
	}
	whole := make([]byte, head.Bytes)
	if err := m.ReadUnit(head, whole); err != nil {
		t.Fatal(err)
	}
	rows := head.Tensors[0].Shape[0]
	rowBytes := head.Tensors[0].Bytes / rows
	for _, c := range []struct{ r0, n, from, count int64 }{
		{0, rows, 0, rows}, {0, 1, 0, 1}, {7, 5, 7, 5}, {rows - 1, 1, rows - 1, 1},
		{rows - 2, 9, rows - 2, 2}, {-4, 2, 0, 2}, {rows + 5, 2, rows, 0}, {3, -1, 3, 0}, {1, 1<<63 - 1, 1, rows - 1},
	} {
		u := head.Rows(c.r0, c.n)
		got := bytes.Repeat([]byte{0xa5}, int(u.Bytes))
		if err := m.ReadUnit(&u, got); err != nil {
			t.Fatal(err)
		}
		x := u.Tensors[0]
		if x.Shape[0] != c.count || x.UnitOff != 0 || x.Bytes != c.count*rowBytes || u.Bytes != alignUp(x.Bytes, TensorAlign) {
			t.Errorf("rows %d, %d: found %+v", c.r0, c.n, u)
		}
		if !bytes.Equal(got[:x.Bytes], whole[c.from*rowBytes:(c.from+c.count)*rowBytes]) {
			t.Errorf("rows %d, %d: found other bytes", c.r0, c.n)
		}
	}
	if head.Tensors[0].Shape[0] != rows {
		t.Error("Rows changed the unit itself")
	}
	layer, _ := m.Unit(Layer, 2)
	if u := layer.Rows(0, 1); len(u.Tensors) != 0 || u.Bytes != 0 {
		t.Errorf("rows of a layer: found %+v, wanted none", u)
	}
}

func TestFind(t *testing.T) {
	m := realModel(t, "mixtral-tiny-q4_k_m.gguf")
	if u, ok := m.Unit(Layer, 3); !ok || u.Name != "layer 3" {
		t.Errorf("found %v, %v", u, ok)
	}
	if _, ok := m.Unit(Layer, 4); ok {
		t.Error("found a layer too many")
	}
	if _, ok := m.Unit(Global, 0); ok {
		t.Error("found a global unit")
	}
	if x := m.Experts(2); len(x) != 4 || x[3].Name != "layer 2 expert 3" {
		t.Errorf("found %d experts", len(x))
	}
	if x := m.Experts(9); len(x) != 0 {
		t.Errorf("found %d experts", len(x))
	}
	if x, u, ok := m.Tensor("blk.1.ffn_up_exps.weight"); !ok || u.Expert != 0 || u.Layer != 1 || len(x.Shape) != 2 {
		t.Errorf("found %v in %v", x, u)
	}
	if _, _, ok := m.Tensor("blk.1.none"); ok {
		t.Error("found a tensor that is not there")
	}
}

func TestVocabularyOnly(t *testing.T) {
	m := openModel(t, filepath.Join(testdata.Dir(t), "vendor", "vocab", "ggml-vocab-gpt-2.gguf"))
	if tokens, ok := m.Strings("tokenizer.ggml.tokens"); len(m.Units) != 0 || !ok || len(tokens) != 50257 {
		t.Errorf("found %d units and %d tokens", len(m.Units), len(tokens))
	}
}

func TestExpertStacks(t *testing.T) {
	w := func(name string, typ gguf.Type, bytes int64, shape ...int64) gguf.TensorInfo {
		return gguf.TensorInfo{Name: "blk.0." + name, Type: typ, Shape: shape, Bytes: bytes}
	}
	for _, c := range []struct {
		name  string
		infos []gguf.TensorInfo
		want  string // units, or part of the error
	}{
		{"biases and a scale for each", []gguf.TensorInfo{
			w("ffn_down_exps.weight", gguf.F32, 48, 2, 3, 2), w("ffn_down_exps.bias", gguf.F32, 24, 2, 3), w("ffn_down_exps.scale", gguf.F32, 8, 2),
		}, "layer 0: ffn_down_exps.bias ffn_down_exps.scale; layer 0 expert 0: ffn_down_exps; layer 0 expert 1: ffn_down_exps; "},
		{"a scale for all", []gguf.TensorInfo{w("ffn_down_exps.weight", gguf.F32, 48, 2, 3, 2), w("ffn_down_exps.scale", gguf.F32, 4, 1)},
			"layer 0: ffn_down_exps.scale; layer 0 expert 0: ffn_down_exps; layer 0 expert 1: ffn_down_exps; "},
		{"a bias without its weight", []gguf.TensorInfo{w("ffn_down_exps.bias", gguf.F32, 24, 2, 3)}, "layer 0: ffn_down_exps.bias; "},
		{"gate and up in one", []gguf.TensorInfo{w("ffn_down_exps.weight", gguf.F32, 8, 1, 2), w("ffn_gate_up_exps.weight", gguf.F32, 8, 1, 2)},
			"layer 0 expert 0: ffn_gate_up_exps ffn_down_exps; "},
		{"other counts", []gguf.TensorInfo{w("ffn_down_exps.weight", gguf.F32, 8, 2, 1), w("ffn_up_exps.weight", gguf.F32, 12, 3, 1)}, "found 3 experts, wanted 2"},
		{"one dimension", []gguf.TensorInfo{w("ffn_down_exps.weight", gguf.F32, 8, 2)}, "found shape [2]"},
		{"too many", []gguf.TensorInfo{w("ffn_down_exps.weight", gguf.F32, 4<<17, 1<<17, 1)}, "found shape"},
		{"bytes that don't divide", []gguf.TensorInfo{w("ffn_down_exps.weight", gguf.F32, 9, 2, 1)}, "wanted whole rows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			units, err := unitsOf("x.gguf", c.infos)
			got := ""
			for i := range units {
				got += units[i].Name + ": " + shorts(&units[i]) + "; "
			}
			if err != nil {
				if got = err.Error(); !errors.Is(err, ErrFormat) || !strings.Contains(got, c.want) {
					t.Errorf("found %q, wanted an ErrFormat that says %q", got, c.want)
				}
			} else if got != c.want {
				t.Errorf("found %q, wanted %q", got, c.want)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	m := realModel(t, "mixtral-tiny-q4_k_m.gguf")
	u := &m.Units[1]
	if err := m.ReadUnit(u, make([]byte, u.Bytes-1)); err == nil {
		t.Error("a short buffer: found no error")
	}
	if err := m.ReadAt(0, make([]byte, 10), 1<<40); err == nil {
		t.Error("past the end: found no error")
	}
	if err := m.ReadAt(1, make([]byte, 10), 0); err == nil {
		t.Error("no such file: found no error")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "model.partial"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, text, hint string }{
		{"nothing there", "none", "no such file", ""},
		{"unfinished beside", "model", "no such file", "it resumes"},
		{"unfinished itself", "model.partial", "unfinished pack", "it resumes"},
		{"no pack", ".", "found no manifest.json", "leat decompose"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(filepath.Join(dir, c.path))
			if err == nil || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("found %v, wanted it to say %q", err, c.text)
			}
			var h interface{ Hint() string }
			if c.hint != "" && (!errors.As(err, &h) || !strings.Contains(h.Hint(), c.hint)) {
				t.Errorf("found no hint that says %q", c.hint)
			}
		})
	}
}
