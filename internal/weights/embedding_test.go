package weights

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"leat/internal/arch"
)

// TestEmbeddings: rows are the file's bytes, whether kept in RAM, not yet there, or never.
func TestEmbeddings(t *testing.T) {
	striped, _ := stripedModel(t)
	broken := func(string, int64, int64) error { return errors.New("broken") }
	for _, c := range []struct {
		name, path string
		setup      setup
		kept, read bool
	}{
		{"kept", model(t), setup{host: 1 << 30}, true, true},
		{"kept, striped", striped, setup{host: 1 << 30}, true, true},
		{"no RAM", model(t), setup{host: 1}, false, false},
		{"kept, but the disk fails", model(t), setup{host: 1 << 30, fault: broken}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.path, c.setup)
			tensor, _, _ := r.o.Model.Tensor(arch.TokenEmbd)
			if kept := r.o.Plan.EmbedBytes; kept != 0 && kept != tensor.Bytes || (kept != 0) != c.kept {
				t.Fatalf("the plan keeps %d bytes of %d", kept, tensor.Bytes)
			}
			vocab := int(tensor.Shape[0])
			row := tensor.Bytes / int64(vocab)
			want := make([]byte, tensor.Bytes)
			r.ok(r.o.Model.ReadAt(tensor.File, want, tensor.Off))
			all := make([]int32, vocab)
			for i := range all {
				all[i] = int32((i*7 + 3) % vocab)
			}
			check := func() {
				t.Helper()
				for _, tokens := range [][]int32{{0}, {int32(vocab - 1)}, {5, 5, 1}, all} {
					got := make([]byte, int64(len(tokens))*row)
					r.ok(r.s.Embeddings(0, got, tokens))
					for i, id := range tokens {
						if !bytes.Equal(got[int64(i)*row:int64(i+1)*row], want[int64(id)*row:int64(id+1)*row]) {
							t.Fatalf("row %d, of token %d, is not the file's", i, id)
						}
					}
				}
			}
			check() // perhaps before they are there
			if c.kept {
				<-r.s.tables[0].done
				if there := r.s.tables[0].read.Load() == r.s.tables[0].offset+tensor.Bytes; there != c.read {
					t.Errorf("all is there: %v, wanted %v", there, c.read)
				}
			}
			check()
			for _, bad := range []int32{-1, int32(vocab)} {
				if err := r.s.Embeddings(0, make([]byte, row), []int32{bad}); err == nil || !strings.Contains(err.Error(), "token_embd") {
					t.Errorf("token %d: err = %v", bad, err)
				}
			}
			if err := r.s.Embeddings(0, make([]byte, row), []int32{1, 2}); err == nil {
				t.Error("two rows went into room for one")
			}
		})
	}
}
