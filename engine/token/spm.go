package token

import (
	"math"
	"strings"
	"unicode/utf8"

	"leat/gguf"
)

// space is how SentencePiece spells one: U+2581, LOWER ONE EIGHTH BLOCK.
const space = "\u2581"

// spm is SentencePiece's BPE: of all neighbours that make a piece, the pair with the
// highest score joins first.
type spm struct {
	*vocab
	ranks    []uint32      // (V) the scores, turned round: lower goes first
	pieces   map[string]ID // what merging can make
	maxPiece int           // bytes of the longest of them
	bytes    [256]ID       // <0xNN>; none where the vocabulary lacks it
	splits   bool          // no piece goes on from a letter into a space
}

func newSPM(md *gguf.Metadata) (model, error) {
	v, err := readVocab(md, rules{bos: 1, eos: 2, unk: 0, addBOS: true})
	if err != nil {
		return nil, err
	}
	scores, err := readScores(md, len(v.texts))
	if err != nil {
		return nil, err
	}
	m := &spm{vocab: v, ranks: make([]uint32, len(scores)), pieces: make(map[string]ID, len(v.texts)), bytes: v.byteTokens(), splits: true}
	m.spaceFirst = readBool(md, "tokenizer.ggml.add_space_prefix", true)
	for i, text := range v.texts {
		m.ranks[i] = rank(scores[i])
		m.addPiece(ID(i), text)
	}
	return m, nil
}

func (m *spm) addPiece(id ID, text string) {
	switch m.kinds[id] {
	case normal, userDefined, unused:
		if _, double := m.pieces[text]; text == "" || double {
			return
		}
		m.pieces[text] = id
		m.maxPiece = max(m.maxPiece, len(text))
		if nextWord(text) < len(text) {
			m.splits = false
		}
	}
}

// rank maps scores to integers so that a higher score has a lower rank. A float's bits
// sort like an integer's once negative ones are complemented.
func rank(score float32) uint32 {
	b := math.Float32bits(score)
	if b>>31 != 0 {
		return b
	}
	return ^b & math.MaxInt32
}

// nextWord is where, after its first rune, the text goes on from something else into a
// space, or its end.
func nextWord(text string) int {
	for off := 0; ; {
		i := strings.Index(text[off:], space)
		if i < 0 {
			return len(text)
		}
		if off+i > 0 && !strings.HasSuffix(text[:off+i], space) {
			return off + i
		}
		off += i + len(space)
	}
}

// spmEncoder is the scratch of one Encode.
type spmEncoder struct {
	*spm
	merger merger
	halves map[string]int // an unused piece -> bytes of its left half
	inUnk  bool           // the last id stood for unknown text: more of it adds none
}

func (m *spm) encoder() encoder {
	e := &spmEncoder{spm: m}
	e.merger.joiner = e
	return e
}

// encode gives text that follows nothing, or a special token, its space prefix.
func (e *spmEncoder) encode(dst []ID, text string, fresh bool) []ID {
	text = strings.ReplaceAll(text, " ", space)
	if fresh && e.spaceFirst {
		text = space + text
	}
	e.inUnk = false
	for len(text) > 0 {
		n := len(text)
		if e.splits {
			// Merges can't cross here, so smaller heaps give the same pieces.
			n = nextWord(text)
		}
		n = cutRune(text, min(n, maxWord))
		dst = e.encodeWord(dst, text[:n])
		text = text[n:]
	}
	return dst
}

// cutRune moves a cut back to the start of the rune it falls into.
func cutRune(text string, n int) int {
	for i := n; i > max(0, n-utf8.UTFMax) && i < len(text); i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return n
}

func (e *spmEncoder) encodeWord(dst []ID, word string) []ID {
	m := &e.merger
	m.reset(word)
	for rest := word; len(rest) > 0; {
		_, size := utf8.DecodeRuneInString(rest)
		id, ok := e.pieces[rest[:size]]
		if !ok {
			id = none
		}
		m.add(size, id)
		rest = rest[size:]
	}
	m.run()
	for i := int32(0); i >= 0; i = m.list[i].next {
		s := &m.list[i]
		dst = e.emit(dst, word[s.start:s.end], s.id)
	}
	return dst
}

func (e *spmEncoder) join(word string, left, right *symbol) (int32, uint32, bool) {
	if int(right.end-left.start) > e.maxPiece {
		return 0, 0, false
	}
	text := word[left.start:right.end]
	id, ok := e.pieces[text]
	if !ok {
		return 0, 0, false
	}
	if e.kinds[id] == unused {
		if e.halves == nil {
			e.halves = map[string]int{}
		}
		e.halves[text] = int(left.end - left.start)
	}
	return id, e.ranks[id], true
}

// emit appends what a merged symbol stands for: its id; an unused piece falls back into
// the halves it was made of; a rune without a piece becomes bytes, or unknown.
func (e *spmEncoder) emit(dst []ID, text string, id ID) []ID {
	if id != none {
		if n, ok := e.halves[text]; ok && e.kinds[id] == unused {
			dst = e.emitPiece(dst, text[:n])
			return e.emitPiece(dst, text[n:])
		}
		e.inUnk = false
		return append(dst, id)
	}
	for i := range len(text) {
		if e.bytes[text[i]] == none {
			return e.emitUnknown(dst)
		}
	}
	for i := range len(text) {
		dst = append(dst, e.bytes[text[i]])
	}
	e.inUnk = false
	return dst
}

func (e *spmEncoder) emitPiece(dst []ID, text string) []ID {
	if id, ok := e.pieces[text]; ok {
		return e.emit(dst, text, id)
	}
	return e.emit(dst, text, none)
}

// emitUnknown: a run of unknown runes is one unknown token, as in SentencePiece.
func (e *spmEncoder) emitUnknown(dst []ID) []ID {
	if e.unk == none || e.inUnk {
		return dst
	}
	e.inUnk = true
	return append(dst, e.unk)
}
