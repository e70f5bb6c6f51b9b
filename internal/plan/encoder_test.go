package plan

import (
	"errors"
	"path/filepath"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/tools/testdata"
)

// A text of an encoder is one step: steps are as long as the context, whatever the budget. There is no head, and all rows give their hidden states.
func TestEncoderPlan(t *testing.T) {
	for name, trained := range map[string]int{"bert": 128, "modernbert": 256} {
		m, err := pack.Open(filepath.Join(testdata.Dir(t), "hf", name+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		whole := Budget{DeviceBytes: 1 << 30, HostBytes: 1 << 30, KVType: gguf.F16}
		least := whole
		least.DeviceBytes = 1
		var small *BudgetError
		if _, err := Make(h, m, least); !errors.As(err, &small) {
			t.Fatalf("%s in a byte: error %v", name, err)
		}
		least.DeviceBytes = small.Need
		for _, c := range []struct {
			what       string
			b          Budget
			ctx, chunk int
			want       int
		}{
			{"all in VRAM", whole, 0, 0, trained}, {"the least VRAM", least, 0, 0, trained}, {"a context", whole, 48, 0, 48},
			{"a chunk", whole, 0, 40, 40}, {"a chunk below the context", whole, 64, 40, 40}, {"a chunk above the context", whole, 32, 40, 32},
		} {
			c.b.ContextLength, c.b.Chunk = c.ctx, c.chunk
			p, err := Make(h, m, c.b)
			if err != nil {
				t.Errorf("%s, %s: %v", name, c.what, err)
				continue
			}
			if p.ContextLength != c.want || p.Chunk != c.want || p.LogitRows != c.want || p.KV.Type != gguf.F32 {
				t.Errorf("%s, %s: context %d, chunk %d, %d rows of output, cache of %v; wanted %d and F32", name, c.what, p.ContextLength, p.Chunk, p.LogitRows, p.KV.Type, c.want)
			}
			if p.Scratch.Logits.Bytes != 0 || p.Scratch.Head.Bytes < int64(4*c.want*h.EmbeddingLength) {
				t.Errorf("%s, %s: %d bytes of logits, %d of hidden states", name, c.what, p.Scratch.Logits.Bytes, p.Scratch.Head.Bytes)
			}
			for i := range p.Units {
				if p.Units[i].Kind == pack.Head {
					t.Errorf("%s, %s: unit %s", name, c.what, p.Units[i].Name)
				}
			}
		}
		if p, err := Make(h, m, least); err == nil && p.StreamedBytes == 0 {
			t.Errorf("%s: the least VRAM streams nothing", name)
		}
		long := whole
		long.ContextLength = 2 * trained
		if _, err := Make(h, m, long); (name == "bert") != (err != nil) { // only its positions have weights
			t.Errorf("%s: a context of %d: error %v", name, long.ContextLength, err)
		}
	}
}
