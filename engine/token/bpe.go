package token

import (
	"unicode/utf8"

	"leat/gguf"
)

// bpe is byte-level BPE: a pattern cuts text into words, and in each word the pair of
// neighbours with the lowest rank joins first, beginning with single bytes.
type bpe struct {
	*vocab
	merges
	pre   *preTokenizer
	words map[string]ID // raw bytes -> the normal token that spells them
	bytes [256]int32    // a byte's symbol
}

// presOf are the pre-tokenizers of models that imply one, whatever tokenizer.ggml.pre says.
var presOf = map[string]string{"gemma4": "gemma4", "whitespace": "whitespace"}

// newBPE reads BPE on bytes or on characters, as the pre-tokenizer wants.
func newBPE(md *gguf.Metadata) (model, error) {
	name, _ := md.String("tokenizer.ggml.model")
	pre, err := findPre(md, presOf[name])
	if err != nil {
		return nil, err
	}
	v, err := readVocab(md, rules{bos: none, eos: none, unk: none, addBOS: pre.addBOS, alwaysBOS: pre.alwaysBOS})
	if err != nil {
		return nil, err
	}
	if _, present := md.Get("tokenizer.ggml.pre"); !present && name == "gpt2" {
		v.notes = append(v.notes, `key "tokenizer.ggml.pre" is missing: text is cut into words in a default way, which may not be the model's`)
	}
	if pre.chars {
		return newCharBPE(md, v, pre)
	}
	m := &bpe{vocab: v, pre: pre, words: make(map[string]ID, len(v.texts))}
	var buf []byte
	for i, text := range v.texts {
		if k := v.kinds[i]; k != normal && k != unused {
			continue
		}
		raw, ok := appendRaw(buf[:0], text)
		if _, double := m.words[string(raw)]; ok && len(raw) > 0 && !double {
			m.words[string(raw)] = ID(i)
		}
		buf = raw
	}
	symbols := newSymbolTable(m.words, len(v.texts))
	for b := range m.bytes {
		m.bytes[b] = symbols.of([]byte{byte(b)})
	}
	if m.merges, err = readMerges(md, symbols, appendRaw); err != nil {
		return nil, err
	}
	return m, nil
}

// bpeEncoder is the scratch of one Encode.
type bpeEncoder struct {
	*bpe
	merger merger
}

func (m *bpe) encoder() encoder {
	e := &bpeEncoder{bpe: m}
	e.merger.joiner = m.merges
	return e
}

func (e *bpeEncoder) encode(dst []ID, text string, _ bool) []ID {
	e.pre.split(text, func(word string) {
		for len(word) > maxWord {
			dst = e.encodeWord(dst, word[:maxWord])
			word = word[maxWord:]
		}
		dst = e.encodeWord(dst, word)
	})
	return dst
}

func (e *bpeEncoder) encodeWord(dst []ID, word string) []ID {
	if e.pre.ignoreMerges {
		if id, ok := e.words[word]; ok {
			return append(dst, id)
		}
	}
	m := &e.merger
	m.reset(word)
	for i := range len(word) {
		m.add(1, e.bytes[word[i]])
	}
	m.run()
	for i := int32(0); i >= 0; i = m.list[i].next {
		s := &m.list[i]
		if e.has(s.id) {
			dst = append(dst, s.id)
			continue
		}
		dst = e.emitBytes(dst, word[s.start:s.end])
	}
	return dst
}

// emitBytes is for a stretch that no token spells.
func (e *bpeEncoder) emitBytes(dst []ID, text string) []ID {
	for i := range len(text) {
		if id := e.bytes[text[i]]; e.has(id) {
			dst = append(dst, id)
		} else if e.unk != none {
			dst = append(dst, e.unk)
		}
	}
	return dst
}

func (m *bpe) appendPiece(dst []byte, id ID) []byte {
	text := m.texts[id]
	if m.kinds[id] == userDefined {
		return append(dst, text...)
	}
	raw, ok := appendRaw(dst, text)
	if !ok {
		return append(dst, text...)
	}
	return raw
}

// byteRunes is GPT-2's alphabet: the printable characters of Latin-1 stand for
// themselves, all other bytes for U+0100 and on, in order.
var byteRunes, runeBytes = func() (runes [256]rune, bytes map[rune]byte) {
	bytes = make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range runes {
		if r := rune(b); r > ' ' && r < 0x7f || r > 0xa0 && r != 0xad {
			runes[b] = r
		} else {
			runes[b] = next
			next++
		}
		bytes[runes[b]] = byte(b)
	}
	return runes, bytes
}()

// appendRaw appends the bytes that a spelling in GPT-2's alphabet stands for. If a rune
// is not in it, ok is false and dst comes back as it was.
func appendRaw(dst []byte, text string) (raw []byte, ok bool) {
	raw = dst
	for _, r := range text {
		b, ok := runeByte(r)
		if !ok {
			return dst, false
		}
		raw = append(raw, b)
	}
	return raw, true
}

func runeByte(r rune) (byte, bool) {
	if r < utf8.RuneSelf {
		return byte(r), r > ' ' && r < 0x7f
	}
	b, ok := runeBytes[r]
	return b, ok
}
