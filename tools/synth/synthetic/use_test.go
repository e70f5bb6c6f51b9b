package synthetic

import (
	"fmt"
	"math"
	"testing"

	"leat/engine/token"
)

// Any text goes to ids and back, and a few merges are used.
func TestTextEncodes(t *testing.T) {
	f := write(t, Options{Arch: "qwen3", Shape: Shape{BlockCount: 1}})
	tok, err := token.New(f.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"In the beginning", "äöü €  漢字 🙂\n\ttabs", "\x00\x7f\xff"} {
		ids := tok.Encode(text, true, false)
		if got := tok.Decode(ids); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	}
	if ids := tok.Encode(" the", false, false); len(ids) != 1 {
		t.Errorf(`" the" is ids %v, want one merged token`, ids)
	}
	if id, ok := tok.EOS(); !ok || !tok.IsEOG(id) || !tok.IsControl(id) {
		t.Errorf("end of text: id %d, %v", id, ok)
	}
}

// One token at position 0 goes through 80 layers: attention hands on its own value, the
// largest it can be.
func TestActivationsStayBounded(t *testing.T) {
	for _, ty := range []string{"q4_k_m", "q8_0", "iq4_xs"} {
		t.Run(ty, func(t *testing.T) {
			f := write(t, Options{Type: ty, Shape: Shape{BlockCount: 80}})
			const d, heads, kv, head = 256, 4, 2, 64
			x := append([]float32(nil), values(t, f, "token_embd.weight")[:d]...)
			w := func(i int, name string) []float32 { return values(t, f, fmt.Sprintf("blk.%d.%s.weight", i, name)) }
			for i := range 80 {
				v := mulMat(w(i, "attn_v"), normed(x))
				var all []float32
				for h := range heads {
					k := h * kv / heads * head
					all = append(all, v[k:k+head]...)
				}
				add(x, mulMat(w(i, "attn_output"), all))
				h := normed(x)
				gate, up := mulMat(w(i, "ffn_gate"), h), mulMat(w(i, "ffn_up"), h)
				for j, g := range gate {
					up[j] *= g / (1 + float32(math.Exp(-float64(g))))
				}
				add(x, mulMat(w(i, "ffn_down"), up))
				if s := deviation(x); !(s < 30) {
					t.Fatalf("after layer %d the residual stream's deviation is %v", i, s)
				}
			}
			logits := mulMat(values(t, f, "output.weight"), normed(x))
			if s := deviation(logits); !(s > 0.3 && s < 3) {
				t.Errorf("logits' deviation %v, want about 1", s)
			}
		})
	}
}

func normed(x []float32) []float32 {
	s, out := float32(deviation(x)), make([]float32, len(x))
	for i, v := range x {
		out[i] = v / s
	}
	return out
}

func mulMat(w, x []float32) []float32 {
	out := make([]float32, len(w)/len(x))
	for r := range out {
		for i, v := range x {
			out[r] += w[r*len(x)+i] * v
		}
	}
	return out
}

func add(x, y []float32) {
	for i, v := range y {
		x[i] += v
	}
}
