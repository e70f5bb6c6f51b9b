package token

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"leat/gguf"
)

// charsmap is SentencePiece's table of replacements: a trie of spellings in one array (a double array, as Darts has it), whose leaves
// say where in texts a spelling's replacement begins; a NUL ends it.
type charsmap struct {
	units []uint32
	texts string
}

// What a unit says: bits 0 to 7 the byte that leads to it, bit 8 whether a leaf follows, the others where its children lie. A leaf has
// bit 31 set, and an offset in texts in all others.
const (
	leafUnit  = 1 << 31
	labelMask = leafUnit | 0xff
	wideUnit  = 1 << 9 // the children's place counts 256 units

	// maxSpelling bounds what one place of a text costs; the tables in the field have spellings of up to 18 bytes.
	maxSpelling = 256
)

// readCharsmap reads tokenizer.ggml.precompiled_charsmap; without the key nothing is replaced. Each replacement that a text can reach is
// looked at here, because Encode can't fail.
func readCharsmap(md *gguf.Metadata) (*charsmap, error) {
	const key = "tokenizer.ggml.precompiled_charsmap"
	ints, _ := md.Ints(key)
	if len(ints) == 0 {
		return &charsmap{}, nil
	}
	raw := make([]byte, len(ints))
	for i, v := range ints {
		raw[i] = byte(v)
	}
	size := uint64(0)
	if len(raw) >= 4 {
		size = uint64(binary.LittleEndian.Uint32(raw))
	}
	if size == 0 || size%4 != 0 || 4+size >= uint64(len(raw)) || raw[len(raw)-1] != 0 {
		return nil, badKey(key, fmt.Sprintf("%d bytes, %d of them a trie", len(raw), size), "its size, a trie in words of 4 bytes, and texts that end in NUL")
	}
	c := &charsmap{units: make([]uint32, size/4), texts: string(raw[4+size:])}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(raw[4+4*i:])
	}
	if bad, found := c.badLeaf(); found {
		return nil, badKey(key, fmt.Sprintf("a replacement at %d", bad), "below %d", len(c.texts))
	}
	return c, nil
}

// children is the place from which a node's children lie, each at its byte's distance.
func (c *charsmap) children(place uint32) uint32 {
	unit := c.units[place]
	offset := unit >> 10
	if unit&wideUnit != 0 {
		offset <<= 8
	}
	return place ^ offset
}

// child goes along a byte from where the children lie.
func (c *charsmap) child(children uint32, b byte) (place uint32, ok bool) {
	place = children ^ uint32(b)
	ok = b != 0 && uint64(place) < uint64(len(c.units)) && c.units[place]&labelMask == uint32(b)
	return place, ok
}

// leaf is the replacement's place in texts, if a spelling ends at a node.
func (c *charsmap) leaf(place uint32) (text uint32, ok bool) {
	if c.units[place]&(1<<8) == 0 {
		return 0, false
	}
	at := c.children(place)
	if uint64(at) >= uint64(len(c.units)) {
		return 0, false
	}
	return c.units[at] &^ leafUnit, true
}

// badLeaf walks over every node once, and finds a replacement outside texts.
func (c *charsmap) badLeaf() (text uint32, found bool) {
	seen := make([]bool, len(c.units))
	for queue := []uint32{0}; len(queue) > 0; {
		place := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if text, ok := c.leaf(place); ok && place != 0 && uint64(text) >= uint64(len(c.texts)) {
			return text, true
		}
		children := c.children(place)
		for b := 1; b < 256; b++ {
			if next, ok := c.child(children, byte(b)); ok && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return 0, false
}

// next is what the start of a text becomes: the replacement of the longest spelling there, or its first rune, and how much of the
// text that was.
func (c *charsmap) next(text string) (replacement string, size int) {
	at := -1
	if len(c.units) > 0 {
		children := c.children(0)
		for i := range min(len(text), maxSpelling) {
			place, ok := c.child(children, text[i])
			if !ok {
				break
			}
			if leaf, ok := c.leaf(place); ok {
				at, size = int(leaf), i+1
			}
			children = c.children(place)
		}
	}
	if at >= 0 {
		replacement, _, _ = strings.Cut(c.texts[at:], "\x00")
		return replacement, size
	}
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError {
		return string(utf8.RuneError), size
	}
	return text[:size], size
}
