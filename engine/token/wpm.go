package token

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"leat/gguf"
)

// wpm is BERT's WordPiece: text loses its case, its accents and its white space; each word is cut into the longest pieces from the
// left, or is unknown as a whole. The file spells a piece that begins a word with U+2581 before it.
type wpm struct {
	*vocab
	begin  *trie // pieces that begin a word, without the U+2581
	inside *trie // pieces that go on with one
	lower  bool  // text becomes small letters
	strip  bool  // text loses its accents
}

// maxWordRunes is BERT's own limit: a longer word is unknown.
const maxWordRunes = 100

func newWPM(md *gguf.Metadata) (model, error) {
	v, err := readVocab(md, rules{
		bos: 101, eos: 102, unk: 100, alwaysBOS: true, alwaysEOS: true,
		bosKeys: []string{"tokenizer.ggml.bos_token_id", "tokenizer.ggml.cls_token_id"},
		eosKeys: []string{"tokenizer.ggml.seperator_token_id"},
	})
	if err != nil {
		return nil, err
	}
	m := &wpm{vocab: v}
	m.lower = readBool(md, "tokenizer.ggml.normalizer.lowercase", true)
	m.strip = readBool(md, "tokenizer.ggml.normalizer.strip_accents", m.lower)
	m.spaceFirst = true
	var begin, inside []ID
	for i, text := range v.texts {
		switch k := v.kinds[i]; {
		case k != normal && k != userDefined && k != unused:
		case strings.HasPrefix(text, space):
			begin = append(begin, ID(i))
		default:
			inside = append(inside, ID(i))
		}
	}
	m.begin = newTrie(begin, func(id ID) string { return v.texts[id][len(space):] })
	m.inside = newTrie(inside, func(id ID) string { return v.texts[id] })
	return m, nil
}

func (m *wpm) encoder() encoder { return m }

func (m *wpm) encode(dst []ID, text string, _ bool) []ID {
	for word := range strings.FieldsSeq(m.normalize(text)) {
		for word != "" {
			n := strings.IndexFunc(word, isPunctuation)
			switch n {
			case -1:
				n = len(word)
			case 0: // stands by itself
				_, n = utf8.DecodeRuneInString(word)
			}
			dst = m.encodeWord(dst, word[:n])
			word = word[n:]
		}
	}
	return dst
}

func (m *wpm) encodeWord(dst []ID, word string) []ID {
	whole := len(dst)
	pieces, fits := m.begin, len(word) <= maxWordRunes || utf8.RuneCountInString(word) <= maxWordRunes
	for word != "" {
		size, id := 0, none
		if fits {
			size, id = pieces.longest(word)
		}
		if id == none {
			if dst = dst[:whole]; m.unk != none {
				dst = append(dst, m.unk)
			}
			return dst
		}
		dst, word, pieces = append(dst, id), word[size:], m.inside
	}
	return dst
}

// normalize makes one space of each white space, drops what can't be seen, and puts spaces round each Han character; then accents
// and capitals go. The order matters: \v, \f and U+0085 are dropped before they could be white space.
func (m *wpm) normalize(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			b.WriteByte(' ')
		case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case isHan(r):
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	text = b.String()
	if m.strip {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	if m.lower {
		// U+0130 alone becomes two runes, whatever stands beside it.
		text = strings.Map(unicode.ToLower, strings.ReplaceAll(text, "\u0130", "i\u0307"))
	}
	return text
}

// isHan is of BERT's own list of blocks, which leaves out U+2B820 to U+2B91F.
func isHan(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4dbf, r >= 0x4e00 && r <= 0x9fff, r >= 0xf900 && r <= 0xfaff, r >= 0x20000 && r <= 0x2a6df,
		r >= 0x2a700 && r <= 0x2b81f, r >= 0x2b920 && r <= 0x2ceaf, r >= 0x2f800 && r <= 0x2fa1f:
		return true
	}
	return false
}

// isPunctuation takes all of ASCII's signs for punctuation, $ and ^ too.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7f && !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	}
	return unicode.IsPunct(r)
}

func (m *wpm) appendPiece(dst []byte, id ID) []byte {
	text := m.texts[id]
	if rest, begins := strings.CutPrefix(text, space); begins && m.kinds[id] != userDefined {
		return append(append(dst, ' '), rest...)
	}
	return append(dst, text...)
}
