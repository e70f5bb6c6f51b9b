package token

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// trie finds spellings of tokens in a text. The children of a node stand one after another, sorted by the byte that leads to them.
type trie struct {
	root   [256]int32 // the children of node 0; 0 where it has none
	first  []int32    // by node: its first child; the next node's first child is past its last
	labels []byte     // by node: the byte that leads to it
	ids    []ID       // by node; none where no spelling ends
	depth  int        // bytes of the longest spelling
}

// newTrie holds the tokens by their spellings; of tokens spelt alike, the one with the lowest id.
func newTrie(ids []ID, spelling func(ID) string) *trie {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id ID) bool { return spelling(id) == "" })
	slices.SortFunc(ids, func(a, b ID) int {
		return cmp.Or(strings.Compare(spelling(a), spelling(b)), cmp.Compare(a, b))
	})
	t := &trie{}
	type span struct{ lo, hi int } // of ids: spelt alike up to the node
	spans := []span{{0, len(ids)}}
	t.labels = []byte{0}
	level := 1 // the first node one byte deeper
	for node := 0; node < len(spans); node++ {
		if node == level {
			t.depth, level = t.depth+1, len(spans)
		}
		lo, hi := spans[node].lo, spans[node].hi
		id := none
		for ; lo < hi && len(spelling(ids[lo])) == t.depth; lo++ {
			if id == none {
				id = ids[lo]
			}
		}
		t.ids = append(t.ids, id)
		t.first = append(t.first, int32(len(spans)))
		for lo < hi {
			label, end := spelling(ids[lo])[t.depth], lo+1
			for end < hi && spelling(ids[end])[t.depth] == label {
				end++
			}
			if node == 0 {
				t.root[label] = int32(len(spans))
			}
			spans, t.labels = append(spans, span{lo, end}), append(t.labels, label)
			lo = end
		}
	}
	t.first = append(t.first, int32(len(spans)))
	return t
}

// step goes from a node along a byte.
func (t *trie) step(node int32, c byte) (next int32, ok bool) {
	if node == 0 {
		next = t.root[c]
		return next, next != 0
	}
	first := t.first[node]
	i := bytes.IndexByte(t.labels[first:t.first[node+1]], c)
	return first + int32(i), i >= 0
}

// find returns where the leftmost token of a text begins, and of those that begin there
// the longest: its size in bytes and its id. Without one: the end of the text, 0 and none.
func (t *trie) find(text string) (off, size int, id ID) {
	for off := range len(text) {
		if t.root[text[off]] == 0 {
			continue
		}
		if size, id := t.longest(text[off:]); id != none {
			return off, size, id
		}
	}
	return len(text), 0, none
}

// longest is the longest token that a text begins with; 0 and none without one.
func (t *trie) longest(text string) (size int, id ID) {
	node, id := int32(0), none
	for i := range len(text) {
		next, ok := t.step(node, text[i])
		if !ok {
			break
		}
		if node = next; t.ids[node] != none {
			size, id = i+1, t.ids[node]
		}
	}
	return size, id
}

// begins reports whether some token begins with the text, or is it.
func (t *trie) begins(text string) bool {
	node := int32(0)
	for i := range len(text) {
		next, ok := t.step(node, text[i])
		if !ok {
			return false
		}
		node = next
	}
	return true
}
