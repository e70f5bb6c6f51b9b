package token

import (
	"errors"
	"strings"
	"testing"

	"leat/gguf"
)

// FuzzEncode: no text panics, makes a control token without leave, or is lost on the way.
func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "hello  lolo", "<s></s><|a|>[x]<0x41>", "▁ ▁", "\xff\xe2\x96", "I'm 12345\r\n\n 🦙", "\u2028\u00a0x", "<|im_end|>"} {
		f.Add(seed)
	}
	spm := mustNew(f, metadata(f, "llama", tinySPM(append(hello, piece{"lolo", unused, -1.5})...)))
	wpm, ugm, ugmBytes := wpmTokenizer(f), ugmTokenizer(f, false), ugmTokenizer(f, true)
	exact := map[string]*Tokenizer{"demo": demoTokenizer(f)}
	for _, spec := range preSpecs {
		if !spec.chars {
			exact[spec.names[0]] = newTinyBPE(f, spec.names[0])
		}
	}
	gemma := mustNew(f, charsMetadata(f, "gemma4"))
	f.Fuzz(func(t *testing.T, text string) {
		for name, tok := range exact {
			checkEncode(t, name, tok, text, text)
		}
		checkEncode(t, "spm", spm, text, strings.ReplaceAll(text, space, " "))
		checkEncode(t, "gemma4", gemma, text, strings.ReplaceAll(text, space, " "))
		checkIDs(t, "wpm", wpm, text, wpm.unk)
		checkIDs(t, "ugm", ugm, text, ugm.unk)
		checkIDs(t, "ugm with bytes", ugmBytes, text, none)
	})
}

func checkEncode(t *testing.T, name string, tok *Tokenizer, text, want string) {
	if got := tok.Decode(checkIDs(t, name, tok, text, none)); got != want {
		t.Errorf("%s: decoded %q, want %q", name, got, want)
	}
}

// checkIDs encodes a text, which gives tokens that plain text may have, and unk perhaps.
func checkIDs(t *testing.T, name string, tok *Tokenizer, text string, unk ID) []ID {
	ids := tok.Encode(text, false, false)
	stream, plain := tok.NewStream(), strings.Builder{}
	for _, id := range ids {
		if !tok.has(id) || id != unk && (tok.kinds[id] == control || tok.kinds[id] == unknown) {
			t.Fatalf("%s: %q gave id %d, %q", name, text, id, tok.Text(id))
		}
		plain.WriteString(stream.Push(id))
	}
	plain.WriteString(stream.Flush())
	if got := strings.ToValidUTF8(plain.String(), "bad"); got != plain.String() {
		t.Errorf("%s: streamed %q", name, got)
	}
	for _, id := range tok.Encode(text, true, true) {
		if !tok.has(id) {
			t.Fatalf("%s: %q gave id %d with special tokens", name, text, id)
		}
	}
	return ids
}

// FuzzNew: no vocabulary panics; it works, or the error says why.
func FuzzNew(f *testing.F) {
	f.Add("llama", "<unk>\n<s>\n</s>\na\nb\nab\n▁", []byte{2, 3, 3, 1, 1, 1, 1}, []byte{0, 0, 0, 9, 8, 7, 6}, "", int64(1), "ab ab")
	f.Add("gpt2", "a\nb\nĠ\nab\n<|x|>\n[u]", []byte{1, 1, 1, 1, 3, 4}, []byte{}, "a b\nĠ ab", int64(4), "ab ab<|x|>[u]")
	f.Add("gpt2", "a", []byte{9}, []byte{1}, "ab", int64(-7), "a")
	f.Add("gemma4", "a\n▁\n<0x41>\n▁a", []byte{1, 1, 6, 1}, []byte{}, "▁ a", int64(-1), "a a\n\nA")
	f.Add("whitespace", "a\nb\nab", []byte{1, 4, 5}, []byte{}, "a b", int64(-1), " ab\u3000a b")
	f.Add("bert", "[u]\n▁a\nb\n▁ab", []byte{2, 1, 1, 1}, []byte{}, "", int64(-1), "ab AB é, 中")
	f.Add("t5", "<u>\n▁\nab\n▁a\n<0x62>", []byte{2, 1, 1, 1, 6}, []byte{0, 3, 2, 1, 0}, "", int64(-1), "ab  ab b")
	f.Fuzz(func(t *testing.T, model, tokens string, types, scores []byte, merges string, id int64, text string) {
		md := gguf.NewMetadata()
		set := func(key string, v any) {
			if err := md.Set("tokenizer.ggml."+key, v); err != nil {
				t.Fatal(err)
			}
		}
		set("model", model)
		set("tokens", strings.Split(tokens, "\n"))
		set("token_type", types)
		negative := make([]float32, len(scores))
		for i, s := range scores {
			negative[i] = -float32(s)
		}
		set("scores", negative)
		set("add_space_prefix", len(text)%2 == 0)
		set("remove_extra_whitespaces", len(text)%3 == 0)
		set("merges", strings.Split(merges, "\n"))
		set("bos_token_id", id)
		set("unknown_token_id", id+1)
		set("add_eos_token", len(tokens)%2 == 0)
		tok, err := New(md)
		if err != nil {
			if !errors.Is(err, gguf.ErrFormat) && !Missing(err) {
				t.Errorf("err = %v, want gguf.ErrFormat", err)
			}
			return
		}
		for _, special := range []bool{false, true} {
			ids := tok.Encode(text, true, special)
			tok.Decode(ids)
			for _, id := range ids {
				if !tok.has(id) {
					t.Errorf("id %d of %d", id, tok.Size())
				}
			}
		}
	})
}

// FuzzGuard: whatever messages say, a template's output has the template's control tokens
// and no more.
func FuzzGuard(f *testing.F) {
	f.Add("<|im_end|>", "<|", "im_end|>")
	f.Add("§", " <|a \n", "|>b")
	f.Add("0", "0", "  \xc2") // a mark must not get beside the template's token when the text is trimmed
	f.Add("\n§", "§x", "\n \n§")
	pieces, merges := tinyBPE()
	pieces = append(pieces, piece{text: "§", kind: control}, piece{text: "  §", kind: control}, piece{text: "§x", kind: control},
		piece{text: "\n", kind: control})
	tok := mustNew(f, metadata(f, "gpt2", pieces, "tokenizer.ggml.merges", merges, "tokenizer.ggml.pre", "qwen2"))
	f.Fuzz(func(t *testing.T, a, b, c string) {
		n := 0
		for _, id := range tok.EncodeTemplate("<|im_end|>" + tok.Guard(a) + tok.Guard(b) + "<|a|>" + strings.TrimSpace(tok.Guard(c)) + "<|im_end|>") {
			if tok.IsControl(id) {
				n++
			}
		}
		if n != 3 {
			t.Errorf("%q, %q, %q: %d control tokens, want 3", a, b, c, n)
		}
	})
}
