package token

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"leat/gguf"
)

// charBPE is BPE with ranked merges that begins with characters instead of bytes, as Gemma 4 has it: a space is spelt U+2581, and a
// character that no token spells becomes bytes, <0xNN>.
type charBPE struct {
	*vocab
	merges
	pre   *preTokenizer
	chars map[rune]int32 // symbols of characters; without one, tokens and merges know none
	bytes [256]ID        // <0xNN>; none where the vocabulary lacks it
	lower bool           // text becomes small letters
}

func newCharBPE(md *gguf.Metadata, v *vocab, pre *preTokenizer) (_ model, err error) {
	m := &charBPE{vocab: v, pre: pre, chars: map[rune]int32{}, bytes: v.byteTokens()}
	m.lower = readBool(md, "tokenizer.ggml.normalizer.lowercase", false)
	words := make(map[string]ID, len(v.texts))
	for i, text := range v.texts {
		if k := v.kinds[i]; k != normal && k != userDefined && k != unused {
			continue
		}
		if _, double := words[text]; text != "" && !double {
			words[text] = ID(i)
		}
	}
	symbols := newSymbolTable(words, len(v.texts))
	asSpelt := func(dst []byte, spelling string) ([]byte, bool) { return append(dst, spelling...), true }
	if m.merges, err = readMerges(md, symbols, asSpelt); err != nil {
		return nil, err
	}
	m.addChars(symbols.words)
	m.addChars(symbols.extra)
	return m, nil
}

func (m *charBPE) addChars(symbols map[string]int32) {
	for text, id := range symbols {
		if r, size := utf8.DecodeRuneInString(text); size == len(text) && (r != utf8.RuneError || size > 1) {
			m.chars[r] = id
		}
	}
}

// charEncoder is the scratch of one Encode.
type charEncoder struct {
	*charBPE
	merger merger
}

func (m *charBPE) encoder() encoder {
	e := &charEncoder{charBPE: m}
	e.merger.joiner = m.merges
	return e
}

func (e *charEncoder) encode(dst []ID, text string, _ bool) []ID {
	if e.lower {
		text = strings.Map(unicode.ToLower, text)
	}
	if !e.pre.dropSpace {
		text = strings.ReplaceAll(text, " ", space)
	}
	e.pre.split(text, func(word string) {
		if r, _ := utf8.DecodeRuneInString(word); e.pre.dropSpace && unicode.IsSpace(r) {
			return
		}
		for word != "" {
			n := cutRune(word, min(len(word), maxWord))
			dst = e.encodeWord(dst, word[:n])
			word = word[n:]
		}
	})
	return dst
}

func (e *charEncoder) encodeWord(dst []ID, word string) []ID {
	m := &e.merger
	m.reset(word)
	for rest := word; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		id, ok := e.chars[r]
		if !ok || r == utf8.RuneError && size == 1 {
			id = none
		}
		m.add(size, id)
		rest = rest[size:]
	}
	m.run()
	for i := int32(0); i >= 0; i = m.list[i].next {
		if s := &m.list[i]; e.has(s.id) {
			dst = append(dst, s.id)
		} else {
			dst = e.emitBytes(dst, word[s.start:s.end])
		}
	}
	return dst
}

// emitBytes is for a stretch that no token spells.
func (e *charEncoder) emitBytes(dst []ID, text string) []ID {
	for i := range len(text) {
		if id := e.bytes[text[i]]; id != none {
			dst = append(dst, id)
		} else if e.unk != none {
			dst = append(dst, e.unk)
		}
	}
	return dst
}
