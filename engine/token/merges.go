package token

import (
	"fmt"
	"strings"

	"leat/gguf"
)

// merges are the pairs of symbols that join, by tokenizer.ggml.merges: left<<32 | right.
type merges map[uint64]merge

// merge: a symbol is a token's id, or a number past the vocabulary for a stretch
// that merges name but no token spells.
type merge struct {
	rank uint32
	id   int32
}

// readMerges takes the lines in the order of their ranks. appendRaw makes text of a half's spelling, or fails if it spells none.
func readMerges(md *gguf.Metadata, symbols *symbolTable, appendRaw func(dst []byte, spelling string) ([]byte, bool)) (merges, error) {
	const key = "tokenizer.ggml.merges"
	lines, ok := md.Strings(key)
	if !ok {
		return nil, badKey(key, "none", "an array of strings")
	}
	m := make(merges, len(lines))
	var buf []byte
	for i, line := range lines {
		// A merge's left half may itself begin with a space in odd files.
		cut := strings.IndexByte(line[min(1, len(line)):], ' ') + 1
		if cut == 0 || cut == len(line)-1 {
			return nil, badKey(key, fmt.Sprintf("%q at %d", line, i), "two pieces with a space between")
		}
		raw, ok := appendRaw(buf[:0], line[:cut])
		half := len(raw)
		if ok {
			raw, ok = appendRaw(raw, line[cut+1:])
		}
		buf = raw
		if !ok {
			continue // text can't get there
		}
		pair := uint64(symbols.of(raw[:half]))<<32 | uint64(symbols.of(raw[half:]))
		if _, double := m[pair]; !double {
			m[pair] = merge{uint32(i), symbols.of(raw)}
		}
	}
	return m, nil
}

func (m merges) join(_ string, left, right *symbol) (int32, uint32, bool) {
	merge, ok := m[uint64(left.id)<<32|uint64(right.id)]
	return merge.id, merge.rank, ok
}

// symbolTable numbers stretches of text: tokens by their id, others after them.
type symbolTable struct {
	words map[string]ID
	extra map[string]int32
	next  int32
}

func newSymbolTable(words map[string]ID, size int) *symbolTable {
	return &symbolTable{words: words, extra: map[string]int32{}, next: int32(size)}
}

func (t *symbolTable) of(raw []byte) int32 {
	if id, ok := t.words[string(raw)]; ok {
		return id
	}
	id, ok := t.extra[string(raw)]
	if !ok {
		id = t.next
		t.extra[string(raw)] = id
		t.next++
	}
	return id
}
