package token

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"leat/gguf"
)

// ugm is SentencePiece's unigram model, of T5 and XLM-RoBERTa: of all ways to cut a text into pieces, the one whose scores, which are
// logarithms of probabilities, have the greatest sum.
type ugm struct {
	*vocab
	scores   []float32 // (V)
	pieces   *trie
	bytes    [256]ID // <0xNN>; none where the vocabulary lacks it
	unkScore float64 // of a rune that no piece spells

	charsmap *charsmap
	prefix   bool // text begins with a space
	collapse bool // a space stands before each word, and nowhere else
}

func newUGM(md *gguf.Metadata) (model, error) {
	v, err := readVocab(md, rules{bos: none, eos: 1, unk: 2, addEOS: true})
	if err != nil {
		return nil, err
	}
	m := &ugm{vocab: v, bytes: v.byteTokens()}
	if m.scores, err = readScores(md, len(v.texts)); err != nil {
		return nil, err
	}
	if m.charsmap, err = readCharsmap(md); err != nil {
		return nil, err
	}
	m.prefix = readBool(md, "tokenizer.ggml.add_space_prefix", false)
	m.collapse = readBool(md, "tokenizer.ggml.remove_extra_whitespaces", false)
	m.spaceFirst = m.prefix || m.collapse
	var pieces []ID
	lowest := math.Inf(1)
	for i := range v.texts {
		switch v.kinds[i] {
		case normal:
			lowest = min(lowest, float64(m.scores[i]))
			pieces = append(pieces, ID(i))
		case userDefined:
			pieces = append(pieces, ID(i))
		}
	}
	if math.IsInf(lowest, 1) {
		return nil, badKey("tokenizer.ggml.token_type", "no normal token", "at least one")
	}
	m.unkScore = lowest - 10
	m.pieces = newTrie(pieces, func(id ID) string { return v.texts[id] })
	return m, nil
}

// readScores reads a number for each token.
func readScores(md *gguf.Metadata, tokens int) ([]float32, error) {
	const key = "tokenizer.ggml.scores"
	scores, ok := md.Floats(key)
	if !ok || len(scores) != tokens {
		return nil, badKey(key, fmt.Sprintf("%d numbers", len(scores)), "%d, one per token", tokens)
	}
	for i, s := range scores {
		if s != s {
			return nil, badKey(key, fmt.Sprintf("NaN at token %d", i), "numbers")
		}
	}
	return scores, nil
}

// normalize replaces what the charsmap says, and puts U+2581 for spaces.
func (m *ugm) normalize(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/4)
	prefixed, inWord := false, false
	for text != "" {
		replacement, size := m.charsmap.next(text)
		text = text[size:]
		for i := range len(replacement) {
			c := replacement[i]
			if c == ' ' {
				inWord = false
				if !m.collapse {
					b.WriteString(space)
				}
				continue
			}
			if !inWord && (m.collapse || m.prefix && !prefixed) {
				b.WriteString(space)
				prefixed = true
			}
			inWord = true
			b.WriteByte(c)
		}
	}
	return b.String()
}

// A cut is the best way to cut a text up to one place.
type cut struct {
	score float64
	start int32 // where its last piece begins
	id    ID    // none if no piece spells the rune
}

// ugmEncoder is the scratch of one Encode.
type ugmEncoder struct {
	*ugm
	cuts []cut
	ends []int32
}

func (m *ugm) encoder() encoder { return &ugmEncoder{ugm: m} }

func (e *ugmEncoder) encode(dst []ID, text string, _ bool) []ID {
	for text = e.normalize(text); text != ""; {
		n := cutRune(text, min(len(text), maxWord))
		e.search(text[:n])
		dst = e.emit(dst, text[:n])
		text = text[n:]
	}
	return dst
}

// search fills cuts: the best way up to each place where a rune ends.
func (e *ugmEncoder) search(text string) {
	e.cuts = e.cuts[:0]
	for range len(text) + 1 {
		e.cuts = append(e.cuts, cut{score: math.Inf(-1)})
	}
	e.cuts[0].score = 0
	for start, end := 0, 0; start < len(text); start = end {
		_, size := utf8.DecodeRuneInString(text[start:])
		end = start + size
		single := false // a piece spells the rune
		node, score := int32(0), e.cuts[start].score
		for i := start; i < len(text); i++ {
			next, ok := e.pieces.step(node, text[i])
			if !ok {
				break
			}
			node = next
			if id := e.pieces.ids[node]; id != none {
				single = single || i+1 == end
				e.offer(i+1, cut{score + e.score(id), int32(start), id})
			}
		}
		if !single {
			e.offer(end, cut{score + e.unkScore, int32(start), none})
		}
	}
}

// offer takes a better way to a place. Of equally good ones the one that began first stays.
func (e *ugmEncoder) offer(place int, c cut) {
	if c.score > e.cuts[place].score {
		e.cuts[place] = c
	}
}

// score is 0 for a user-defined token: it beats all pieces.
func (m *ugm) score(id ID) float64 {
	if m.kinds[id] == userDefined {
		return 0
	}
	return float64(m.scores[id])
}

// emit appends the pieces of the best way. A run of runes that no piece spells is bytes, or one unknown token.
func (e *ugmEncoder) emit(dst []ID, text string) []ID {
	e.ends = e.ends[:0]
	for end := int32(len(text)); end > 0; end = e.cuts[end].start {
		e.ends = append(e.ends, end)
	}
	inUnk := false
	for i := len(e.ends) - 1; i >= 0; i-- {
		c := e.cuts[e.ends[i]]
		if c.id != none {
			dst, inUnk = append(dst, c.id), false
			continue
		}
		if unspelt := text[c.start:e.ends[i]]; e.hasBytes(unspelt) {
			for j := range len(unspelt) {
				dst = append(dst, e.bytes[unspelt[j]])
			}
			inUnk = false
		} else if !inUnk && e.unk != none {
			dst, inUnk = append(dst, e.unk), true
		}
	}
	return dst
}

// hasBytes reports whether each byte of a text has a token.
func (m *ugm) hasBytes(text string) bool {
	for i := range len(text) {
		if m.bytes[text[i]] == none {
			return false
		}
	}
	return true
}
