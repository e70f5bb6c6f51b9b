package arch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
)

// A tensor that no operation reads is refused by its name, whatever and wherever it is.
func TestExtraTensors(t *testing.T) {
	everyModel(t, func(t *testing.T, m *pack.Model) {
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		d := int64(h.EmbeddingLength)
		for _, l := range []int{0, h.BlockCount - 1} {
			for _, rest := range []string{
				"attn_q_norm.weight", "attn_k_norm.weight", "attn_norm.bias", "attn_norm_2.weight", "attn_post_norm.weight", "attn_sub_norm.weight", "attn_sinks.weight", "attn_rot_embd.weight",
				"ffn_norm.weight", "post_attention_norm.weight", "post_ffw_norm.weight", "ffn_norm.bias", "ffn_sub_norm.weight", "layer_output_norm.weight", "layer_output_scale.weight", "ffn_act.scales",
				"attn_q.scale", "attn_q.input_scale", "attn_output.scale", "ffn_down.scale", "ffn_down_exps.scale", "ffn_gate_inp.scale", "attn_q.weight_scale",
				"exp_probs_b.weight", "ffn_gate_shexp.weight", "ffn_gate_inp_shexp.weight", "ffn_gate.weight", "ffn_gate_exps.bias", "ffn_up_exps.bias", "ssm_d", "ssm_a", "attn_gate.weight", "attn_q_a_norm.weight",
				"nextn.eh_proj.weight", "attn_q.lora_a", "unheard_of",
			} {
				name := fmt.Sprintf("blk.%d.%s", l, rest)
				gate := rest == "ffn_gate_inp_shexp.weight" && m.Has(fmt.Sprintf("blk.%d.ffn_gate_shexp.weight", l)) // it turns a gate on
				if !m.Has(name) && !gate && !turnsOn(h.Layer(l, m.Has), m, name) {
					refusesTensor(t, withTensor(t, m, pack.Layer, l, name, d), name)
				}
			}
		}
		for _, l := range []int{h.BlockCount, h.BlockCount + 1, 99} {
			name := fmt.Sprintf("blk.%d.attn_norm.weight", l)
			if !m.Has(name) {
				refusesTensor(t, withTensor(t, m, pack.Layer, l, name, d), name)
			}
		}
		for kind, names := range map[pack.Kind][]string{
			pack.Norm:   {"output_norm.bias"},
			pack.Global: {"output.bias", "token_embd_norm.weight", "position_embd.weight", "rope_factors_long.weight", "cls.weight", "output.scale", "v.blk.0.attn_q.weight", "mm.0.weight", "blk.00.attn_q.weight"},
		} {
			for _, name := range names {
				if m.Has(name) || turnsOn(h.Output(m.Has), m, name) {
					continue
				}
				refusesTensor(t, withTensor(t, m, kind, -1, name, d), name)
			}
		}
	})
}

// turnsOn reports whether a tensor of a row's length turns an operation on that needs no other one: the bias of a layer norm among ops, or Falcon's second norm.
func turnsOn(ops []arch.Op, m *pack.Model, name string) bool {
	weight, isBias := strings.CutSuffix(name, ".bias")
	return m.Architecture() == "falcon" && strings.HasSuffix(name, "attn_norm_2.weight") ||
		isBias && slices.ContainsFunc(ops, func(o arch.Op) bool { return o.Kind == arch.LayerNorm && o.Weight == weight+".weight" })
}

// refusesTensor wants an error that names the tensor: as one too many, or, where it turns an operation on, with another one
// that this needs then.
func refusesTensor(t *testing.T, m *pack.Model, name string) {
	t.Helper()
	_, err := arch.Read(m)
	var unread *arch.UnreadError
	switch {
	case err == nil:
		t.Errorf("%s: loads", name)
	case errors.As(err, &unread):
		if len(unread.Names) != 1 || unread.Names[0] != name || !strings.Contains(err.Error(), name) || unread.Hint() == "" || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: error %v", name, err)
		}
	case !strings.Contains(err.Error(), "is missing") && !strings.Contains(err.Error(), "found shape"):
		t.Errorf("%s: error %v", name, err)
	}
}

// Without one of its tensors, and with one of another shape, a model is refused: every one of them is asked for.
func TestEveryTensorIsAsked(t *testing.T) {
	everyModel(t, func(t *testing.T, m *pack.Model) {
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Units {
			for j, tensor := range m.Units[i].Tensors {
				if m.Units[i].Expert > 0 || m.Units[i].Layer >= h.BlockCount { // those predict further tokens
					continue
				}
				turned := with(t, m, func(_ *gguf.Metadata, units []pack.Unit) []pack.Unit {
					s := &units[i].Tensors[j].Shape
					*s = append([]int64{3}, *s...)
					return units
				})
				if _, err := arch.Read(turned); err == nil || !strings.Contains(err.Error(), tensor.Name) {
					t.Errorf("%s of another shape: error %v", tensor.Name, err)
				}
				if optional(tensor.Name) || h.Architecture != "gemma4" && strings.HasSuffix(tensor.Name, ".scale") || h.Architecture == "gemma4" && strings.HasSuffix(tensor.Name, "attn_v.weight") && !h.Windowed(m.Units[i].Layer) {
					continue
				}
				without := with(t, m, func(_ *gguf.Metadata, units []pack.Unit) []pack.Unit {
					units[i].Tensors = append(units[i].Tensors[:j], units[i].Tensors[j+1:]...)
					return units
				})
				if _, err := arch.Read(without); err == nil {
					t.Errorf("without %s: loads", tensor.Name)
				}
			}
		}
	})
}

// optional tensors are read where a file has them.
func optional(name string) bool {
	return name == arch.Output || name == arch.RopeFreqs || strings.Contains(name, ".indexer.") || strings.HasSuffix(name, ".bias") && !strings.HasSuffix(name, "ssm_dt.bias") || strings.HasSuffix(name, "ffn_gate_inp_shexp.weight") ||
		strings.HasSuffix(name, ".input_scale")
}

// A wrong number of layers is named.
func TestBlockCount(t *testing.T) {
	everyModel(t, func(t *testing.T, m *pack.Model) {
		key := m.Architecture() + ".block_count"
		n, _ := m.Int(key)
		var hint interface{ Hint() string }
		if n > 1 {
			_, err := arch.Read(withKey(t, m, key, uint32(n-1)))
			if err == nil {
				t.Error("one layer less: loads")
			} else if errors.As(err, &hint) && !strings.Contains(hint.Hint(), "block_count") {
				t.Errorf("one layer less: error %v, hint %q", err, hint.Hint())
			}
		}
		if _, err := arch.Read(withKey(t, m, key, uint32(n+1))); err == nil {
			t.Error("one layer more: loads")
		}
		if _, err := arch.Read(withKey(t, m, m.Architecture()+".nextn_predict_layers", uint32(1))); err == nil && n > 1 && !predicts(m) {
			t.Error("a layer said to predict further tokens: loads without it")
		}
	})
}

func predicts(m *pack.Model) bool {
	for i := range m.Units {
		for _, t := range m.Units[i].Tensors {
			if strings.Contains(t.Name, ".nextn.") {
				return true
			}
		}
	}
	return false
}

// Layers that predict further tokens are left out, and a note says so.
func TestPredictingLayers(t *testing.T) {
	h, err := arch.Read(nano(t, "glm4moe-nano"))
	if err != nil || !strings.Contains(strings.Join(h.Notes, "\n"), "of 1 layer that predict") {
		t.Fatalf("error %v, notes %q", err, h.Notes)
	}
	m := nano(t, "qwen2moe-nano")
	if h, err = arch.Read(m); err != nil || len(h.Notes) > 0 {
		t.Fatalf("error %v, notes %q", err, h.Notes)
	}
	l := h.BlockCount
	more := withTensor(t, m, pack.Layer, l, fmt.Sprintf("blk.%d.attn_norm.weight", l), 64)
	more = withTensor(t, more, pack.Experts, l, fmt.Sprintf("blk.%d.ffn_gate_exps.weight", l), 64, 128)
	counted := func(m *pack.Model) *pack.Model {
		return withKey(t, withKey(t, m, "qwen2moe.nextn_predict_layers", uint32(1)), "qwen2moe.block_count", uint32(l+1))
	}
	if _, err := arch.Read(counted(more)); err == nil {
		t.Error("a layer without tensors of its own kind: loads")
	}
	more = withTensor(t, more, pack.Layer, l, fmt.Sprintf("blk.%d.nextn.eh_proj.weight", l), 64, 128)
	if _, err := arch.Read(more); err == nil {
		t.Error("a layer that no key counts: loads")
	}
	if h, err = arch.Read(counted(more)); err != nil || h.BlockCount != l || len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "3 tensors of 1 layer that predict") {
		t.Errorf("error %v, notes %q", err, h.Notes)
	}
}

// What an error says.
func TestUnreadError(t *testing.T) {
	m := nano(t, "gpt-oss-nano")
	for _, c := range []struct {
		names       []string
		wants, hint string
	}{
		{[]string{"blk.0.post_ffw_norm.weight"}, "found 1 tensor that no operation of gpt-oss reads: blk.0.post_ffw_norm.weight", "variant"},
		{[]string{"blk.0.attn_sinks.scale", "blk.1.ffn_down_exps.scale"}, "found 2 tensors that no operation of gpt-oss reads: blk.0.attn_sinks.scale, blk.1.ffn_down_exps.scale", "scales"},
		{[]string{"blk.0.a", "blk.0.b", "blk.0.c", "blk.0.d", "blk.0.e"}, "found 5 tensors that no operation of gpt-oss reads: blk.0.a, blk.0.b, blk.0.c and 2 more", "variant"},
		{[]string{"blk.99.attn_q.weight"}, "blk.99.attn_q.weight", "gpt-oss.block_count"},
	} {
		more := m
		for _, name := range c.names {
			l := 0
			fmt.Sscanf(name, "blk.%d.", &l)
			more = withTensor(t, more, pack.Layer, l, name, 1)
		}
		_, err := arch.Read(more)
		var unread *arch.UnreadError
		if !errors.As(err, &unread) || !strings.Contains(err.Error(), c.wants) || !strings.Contains(unread.Hint(), c.hint) {
			t.Errorf("error %v, wanted one with %q and a hint with %q", err, c.wants, c.hint)
		}
	}
}

// The number of tokens, where a file has them, is that of the embedding's rows.
func TestVocabularySizes(t *testing.T) {
	everyModel(t, func(t *testing.T, m *pack.Model) {
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		const key = "tokenizer.ggml.tokens"
		for _, n := range []int{0, 1, h.VocabSize - 1, h.VocabSize, h.VocabSize + 1} {
			_, err := arch.Read(withKey(t, m, key, make([]string, n)))
			if fits := n == h.VocabSize; fits != (err == nil) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q: found %d tokens, wanted %d", key, n, h.VocabSize)) {
				t.Errorf("%d tokens of %d: error %v", n, h.VocabSize, err)
			}
		}
		if _, err := arch.Read(withKey(t, m, key, nil)); err != nil {
			t.Errorf("no tokens: %v", err)
		}
		if _, err := arch.Read(withKey(t, m, m.Architecture()+".vocab_size", uint32(h.VocabSize+1))); err == nil || !strings.Contains(err.Error(), "vocab_size") {
			t.Errorf("another vocab_size: error %v", err)
		}
	})
}
