package decompose

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"leat/decompose/pack"
	"leat/gguf/quant"
	"leat/tools/testdata"
)

// A source with NaN or an infinity in any of its tensors, experts' among them, is refused with the tensor's name, unless it is to be copied
// as it is.
func TestNotFinite(t *testing.T) {
	source := filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf")
	data, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	m, err := pack.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, name := range []string{"blk.0.ffn_gate_exps.weight", "blk.1.attn_q.weight", "output_norm.weight", "token_embd.weight"} {
		at, _, ok := m.Tensor(name)
		if !ok {
			t.Fatalf("no tensor %q", name)
		}
		spoiled := append([]byte(nil), data...)
		block := at.Bytes / int64(at.Type.BlockBytes()) / 2
		to := spoiled[at.Off+block*int64(at.Type.BlockBytes()):][:at.Type.BlockBytes()]
		for i := range to { // wherever its numbers are
			to[i] = 0xff
		}
		if found := quant.FirstBroken(at.Type, to, 0); found != 0 {
			t.Fatalf("%s: the block is not spoiled", name)
		}
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := os.WriteFile(path, spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		var e *NotFiniteError
		if _, err := Run(t.Context(), path, path+".pack", Options{Finite: true}); !errors.As(err, &e) || e.Tensor != name || e.Block != block {
			t.Errorf("%s: found error %v, wanted a NotFiniteError of block %d", name, err, block)
		}
		if _, err := Run(t.Context(), path, path+".any", Options{}); err != nil {
			t.Errorf("%s: to be copied as it is: %v", name, err)
		}
	}
}
