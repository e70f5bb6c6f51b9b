package truth

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"leat/tools/testdata"
)

// Logits of another engine, in float32, for models of each architecture that it and we know. It rounds, so we may differ by that.
func TestAgainstAnotherEngine(t *testing.T) {
	dir := testdata.Dir(t)
	for _, name := range []string{
		"llama-tiny-q4_k_m", "llama3-tiny-q8_0", "qwen2-tiny-q4_k_m", "qwen3-tiny-q8_0", "mixtral-tiny-q4_k_m", "qwen3moe-tiny-q4_k_m",
		"mixtral-tiny-mxfp4_moe", "qwen3moe-tiny-mxfp4_moe",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Open(filepath.Join(dir, "models", name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			var ref struct{ Tokens, Greedy []int }
			base := filepath.Join(dir, "logits", name)
			text, err := os.ReadFile(base + ".deq.json")
			if err == nil {
				err = json.Unmarshal(text, &ref)
			}
			if err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(base + ".deq.f32")
			if err != nil {
				t.Fatal(err)
			}
			var diff, norm float64
			s := m.NewSession()
			for _, id := range append(ref.Tokens, ref.Greedy...) {
				row, err := s.Next(id)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range row {
					want := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
					diff, norm = diff+(v-want)*(v-want), norm+want*want
					raw = raw[4:]
				}
			}
			if len(raw) != 0 {
				t.Errorf("%d bytes of the reference are left over", len(raw))
			}
			if e := math.Sqrt(diff / norm); !(e <= 3e-6) {
				t.Errorf("relative error %.2e, wanted at most 3e-6", e)
			} else {
				t.Logf("relative error %.2e", e)
			}
		})
	}
}
