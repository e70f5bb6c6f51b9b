package token

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"leat/gguf"
)

// piece is a token of a vocabulary made in a test.
type piece struct {
	text  string
	kind  kind
	score float32
}

// tinySPM is a vocabulary in the manner of SentencePiece: unknown, BOS, EOS, the bytes,
// and pieces.
func tinySPM(pieces ...piece) []piece {
	all := []piece{{"<unk>", unknown, 0}, {"<s>", control, 0}, {"</s>", control, 0}}
	for b := range 256 {
		all = append(all, piece{fmt.Sprintf("<0x%02X>", b), byteToken, 0})
	}
	return append(all, pieces...)
}

// hello is enough to say it, and to tempt: "<s>" could be merged from letters.
var hello = []piece{
	{"▁he", normal, -1}, {"ll", normal, -2}, {"he", normal, -3}, {"▁h", normal, -4}, {"lo", normal, -5},
	{"▁", normal, -6}, {"h", normal, -7}, {"e", normal, -8}, {"l", normal, -9}, {"o", normal, -10}, {"▁▁", normal, -11},
	{"<", normal, -12}, {"s", normal, -13}, {">", normal, -14}, {"<s", normal, -15}, {"é", normal, -16},
}

// metadata writes a vocabulary as a file would hold it, with more keys after.
func metadata(t testing.TB, model string, pieces []piece, more ...any) *gguf.Metadata {
	t.Helper()
	var texts []string
	var kinds []int32
	var scores []float32
	for _, p := range pieces {
		texts, kinds, scores = append(texts, p.text), append(kinds, int32(p.kind)), append(scores, p.score)
	}
	md := gguf.NewMetadata()
	set := func(key string, v any) {
		if err := md.Set(key, v); err != nil {
			t.Fatal(err)
		}
	}
	set("tokenizer.ggml.model", model)
	set("tokenizer.ggml.tokens", texts)
	set("tokenizer.ggml.token_type", kinds)
	if model == "llama" || model == "t5" {
		set("tokenizer.ggml.scores", scores)
	}
	for i := 0; i < len(more); i += 2 {
		if more[i+1] == nil {
			md.Delete(more[i].(string))
			continue
		}
		set(more[i].(string), more[i+1])
	}
	return md
}

// tinyBPE is a byte-level vocabulary: the 256 bytes in order, two words, and specials.
func tinyBPE() (pieces []piece, merges []string) {
	for _, r := range byteRunes {
		pieces = append(pieces, piece{text: string(r), kind: normal})
	}
	for _, merge := range []string{"l o", "Ġ h", "Ġh e", "Ġhe lo", "e lo"} {
		merges = append(merges, merge)
		pieces = append(pieces, piece{text: strings.Replace(merge, " ", "", 1), kind: normal})
	}
	return append(pieces, piece{text: "<|a|>", kind: control}, piece{text: "<|a|>b", kind: control}, piece{text: "[x]", kind: userDefined},
		piece{text: "<|im_end|>", kind: userDefined}, piece{text: "whole", kind: normal}), merges
}

func mustNew(t testing.TB, md *gguf.Metadata) *Tokenizer {
	t.Helper()
	tok, err := New(md)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func newTinyBPE(t testing.TB, pre string, more ...any) *Tokenizer {
	t.Helper()
	pieces, merges := tinyBPE()
	more = append(more, "tokenizer.ggml.merges", merges, "tokenizer.ggml.pre", pre)
	return mustNew(t, metadata(t, "gpt2", pieces, more...))
}

// TestHostile: what contradicts itself is an error that names the key.
func TestHostile(t *testing.T) {
	spm := tinySPM(hello...)
	bpe, merges := tinyBPE()
	withMerges := []any{"tokenizer.ggml.merges", merges}
	tests := map[string]struct {
		model  string
		pieces []piece
		set    []any
		want   string
	}{
		"no tokens":             {"llama", nil, nil, "tokenizer.ggml.tokens: found no tokens"},
		"tokens not strings":    {"llama", spm, []any{"tokenizer.ggml.tokens", []int32{1}}, "tokenizer.ggml.tokens: found an array of int32, want an array of strings"},
		"types too few":         {"llama", spm, []any{"tokenizer.ggml.token_type", []int32{1}}, "token_type: found 1 integers, want 275"},
		"types not integers":    {"llama", spm, []any{"tokenizer.ggml.token_type", "x"}, "token_type: found a string, want an array of integers"},
		"type unheard of":       {"llama", []piece{{"a", 7, 0}}, nil, "found type 7 at token 0"},
		"scores too few":        {"llama", spm, []any{"tokenizer.ggml.scores", []float32{1, 2}}, "scores: found 2 numbers, want 275"},
		"scores missing":        {"llama", spm, []any{"tokenizer.ggml.scores", "x"}, "scores: found a string, want an array of floats"},
		"bos past the end":      {"llama", spm, []any{"tokenizer.ggml.bos_token_id", uint32(275)}, "bos_token_id: found 275, want an id below 275"},
		"eos below zero":        {"llama", spm, []any{"tokenizer.ggml.eos_token_id", int32(-2)}, "eos_token_id: found -2"},
		"unknown past the end":  {"gpt2", bpe, append(withMerges, "tokenizer.ggml.unknown_token_id", uint64(math.MaxUint64)), "unknown_token_id: found 18446744073709551615"},
		"eot no number":         {"gpt2", bpe, append(withMerges, "tokenizer.ggml.eot_token_id", "x"), "eot_token_id: found a string, want an integer"},
		"add_bos no bool":       {"llama", spm, []any{"tokenizer.ggml.add_bos_token", uint8(1)}, "add_bos_token: found a uint8, want a bool"},
		"add_bos of no token":   {"gpt2", bpe, append(withMerges, "tokenizer.ggml.add_bos_token", true), "add_bos_token: found true, want false, because no key names the token"},
		"add_eos of no token":   {"gpt2", bpe, append(withMerges, "tokenizer.ggml.add_eos_token", true), "add_eos_token: found true"},
		"space prefix no bool":  {"llama", spm, []any{"tokenizer.ggml.add_space_prefix", "yes"}, "add_space_prefix: found a string"},
		"no model":              {"llama", spm, []any{"tokenizer.ggml.model", nil}, "tokenizer.ggml.model: found none"},
		"a score that is none":  {"llama", tinySPM(piece{"x", normal, float32(math.NaN())}), nil, "scores: found NaN at token 259"},
		"a unigram's scores":    {"t5", spm, []any{"tokenizer.ggml.scores", nil}, "scores: found 0 numbers, want 275"},
		"no normal token":       {"t5", tinySPM(), nil, "token_type: found no normal token"},
		"charsmap no bytes":     {"t5", spm, []any{charsmapKey, []int32{1}}, "precompiled_charsmap: found an array of int32, want an array of bytes"},
		"no merges":             {"gpt2", bpe, nil, "merges: found none"},
		"merge without a space": {"gpt2", bpe, []any{"tokenizer.ggml.merges", []string{"a b", "ab"}}, `merges: found "ab" at 1`},
		"merge of one half":     {"gpt2", bpe, []any{"tokenizer.ggml.merges", []string{"a "}}, `merges: found "a " at 0`},
		"empty merge":           {"gpt2", bpe, []any{"tokenizer.ggml.merges", []string{""}}, `merges: found "" at 0`},
		"pre no string":         {"gpt2", bpe, append(withMerges, "tokenizer.ggml.pre", uint32(1)), "tokenizer.ggml.pre: found a uint32, want a string"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(metadata(t, tt.model, tt.pieces, tt.set...))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, gguf.ErrFormat) {
				t.Errorf("err = %v, want %q and gguf.ErrFormat", err, tt.want)
			}
		})
	}
	for name, md := range map[string]*gguf.Metadata{"nothing at all": gguf.NewMetadata(), "no vocabulary": metadata(t, "no_vocab", nil), "none": metadata(t, "none", nil)} {
		if _, err := New(md); !errors.Is(err, ErrNone) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}

func TestUnsupported(t *testing.T) {
	bpe, merges := tinyBPE()
	for name, md := range map[string]*gguf.Metadata{
		"tokenizer.ggml.model": metadata(t, "rwkv", bpe),
		"tokenizer.ggml.pre":   metadata(t, "gpt2", bpe, "tokenizer.ggml.merges", merges, "tokenizer.ggml.pre", "rwkv"),
	} {
		_, err := New(md)
		var u *UnsupportedError
		if !errors.As(err, &u) || u.Key != name || u.Name != "rwkv" || !strings.Contains(u.Hint(), "gpt") {
			t.Errorf("%s: err = %v, want an UnsupportedError with a hint", name, err)
		}
	}
}

// TestOddities: what the field's files do and still work.
func TestOddities(t *testing.T) {
	t.Run("id of all ones is none", func(t *testing.T) {
		tok := mustNew(t, metadata(t, "llama", tinySPM(hello...), "tokenizer.ggml.bos_token_id", uint32(math.MaxUint32)))
		if id, ok := tok.BOS(); ok || tok.AddsBOS() {
			t.Errorf("BOS = %d", id)
		}
	})
	t.Run("no types", func(t *testing.T) {
		md := metadata(t, "llama", tinySPM(hello...))
		md.Delete("tokenizer.ggml.token_type")
		tok := mustNew(t, md)
		if got := tok.Encode("<s>h", false, false); len(got) == 0 || tok.IsControl(got[0]) || tok.Decode(got) != "<s>h" {
			t.Errorf("ids %v, decoded %q", got, tok.Decode(got))
		}
	})
	t.Run("no pre is default", func(t *testing.T) {
		pieces, merges := tinyBPE()
		tok := mustNew(t, metadata(t, "gpt2", pieces, "tokenizer.ggml.merges", merges))
		if got := tok.model.(*bpe).pre.names[0]; got != "default" {
			t.Errorf("pre = %s", got)
		}
	})
	t.Run("merge that spells no bytes", func(t *testing.T) {
		pieces, _ := tinyBPE()
		mustNew(t, metadata(t, "gpt2", pieces, "tokenizer.ggml.merges", []string{"日 本"}))
	})
}

func TestEOG(t *testing.T) {
	tok := newTinyBPE(t, "qwen2", "tokenizer.ggml.eos_token_id", uint32(0), "tokenizer.ggml.eot_token_id", uint32(1), "tokenizer.ggml.eom_token_id", uint32(2),
		"tokenizer.ggml.fim_pad_token_id", uint32(3), "tokenizer.ggml.fim_rep_token_id", uint32(4), "tokenizer.ggml.fim_sep_token_id", uint32(5))
	end, _ := tok.Find("<|im_end|>")
	for id := range ID(tok.Size()) {
		if want := id <= 5 || id == end; tok.IsEOG(id) != want {
			t.Errorf("IsEOG(%d %q) = %v", id, tok.Text(id), !want)
		}
	}
	if !tok.IsControl(end) {
		t.Error("<|im_end|>, user-defined by the file, is no control token")
	}
	if tok.IsEOG(-1) || tok.IsEOG(1<<30) || tok.IsControl(-1) || tok.IsControl(1<<30) {
		t.Error("an id outside the vocabulary is something")
	}
}

// TestEOGOfParts: where <|end|> ends a part of a reply, the reply goes on.
func TestEOGOfParts(t *testing.T) {
	for name, tt := range map[string]struct {
		tokens string
		keys   []any
		want   string
	}{
		"Phi 3":                    {"<|user|> <|end|> <|endoftext|>", nil, "<|end|> <|endoftext|>"},
		"gpt-oss":                  {"<|return|> <|call|> <|end|> <|start|>", nil, "<|return|> <|call|>"},
		"gpt-oss, named by a key":  {"<|return|> <|call|> <|end|>", []any{"tokenizer.ggml.eot_token_id", uint32(2)}, "<|return|> <|call|>"},
		"Solar Open":               {"<|flush|> <|calls|> <|end|>", nil, "<|flush|> <|calls|>"},
		"Gemma 4":                  {"<eos> <|tool_response> </s> <turn|>", nil, "<eos> <|tool_response> <turn|>"},
		"Llama 2":                  {"<s> </s> <eos>", nil, "</s> <eos>"},
		"Gemma 4, whose EOS it is": {"<|tool_response> </s>", []any{"tokenizer.ggml.eos_token_id", uint32(1)}, "<|tool_response> </s>"},
		"half of either":           {"<|return|> <|flush|> <|end|>", nil, "<|return|> <|flush|> <|end|>"},
		"the file's only EOS":      {"<|return|> <|call|> <|end|>", []any{"tokenizer.ggml.eos_token_id", uint32(2)}, "<|return|> <|call|> <|end|>"},
		"spelt by ordinary tokens": {"<|return|> <|end|>", []any{"tokenizer.ggml.token_type", []int32{1, 1}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var pieces []piece
			for _, text := range strings.Fields(tt.tokens) {
				pieces = append(pieces, piece{text: text, kind: control})
			}
			tok := mustNew(t, metadata(t, "gpt2", pieces, append(tt.keys, "tokenizer.ggml.merges", []string{})...))
			var got []string
			for id := range ID(tok.Size()) {
				if tok.IsEOG(id) {
					got = append(got, tok.Text(id))
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("EOG %v, want %s", got, tt.want)
			}
			if end, ok := tok.Find("<|end|>"); ok && tok.IsControl(end) != (tt.want != "") {
				t.Errorf("<|end|> is control: %v", tok.IsControl(end))
			}
		})
	}
}

func TestByteText(t *testing.T) {
	for text, want := range map[string]int{"<0x00>": 0, "<0x0A>": 10, "<0xfF>": 255, "<0x0G>": -1, "<0x0>": -1, "<0x000>": -1, "0x0A00": -1, "": -1} {
		b, ok := byteText(text)
		if got := int(b); ok != (want >= 0) || ok && got != want {
			t.Errorf("byteText(%q) = %d, %v", text, got, ok)
		}
	}
}

// Every key that this format has for tokenizers is refused by its name where it has another type, read or not.
func TestKeyTypes(t *testing.T) {
	values := []any{"x", uint32(1), float32(1), true, []string{"x"}, []uint32{1}, []uint8{1}, []float32{1}, []bool{true}}
	bpe, merges := tinyBPE()
	for key, kind := range keyTypes {
		for _, v := range values {
			for model, md := range map[string]*gguf.Metadata{
				"llama": metadata(t, "llama", tinySPM(hello...), key, v),
				"gpt2":  metadata(t, "gpt2", bpe, "tokenizer.ggml.merges", merges, key, v),
			} {
				_, err := New(md)
				if fits := kind.fits(v); !fits && (err == nil || !strings.Contains(err.Error(), key+": found "+gguf.TypeName(v)) || !errors.Is(err, gguf.ErrFormat)) {
					t.Errorf("%s: %s = %#v: err = %v, wanted one about the type", model, key, v, err)
				} else if fits && err != nil && strings.Contains(err.Error(), "found "+gguf.TypeName(v)) {
					t.Errorf("%s: %s = %#v: err = %v", model, key, v, err)
				}
			}
		}
	}
}
