package token

// finder finds special tokens in text: the leftmost, and of those that begin there the
// longest. It is a trie whose edges lie in one map, so a lookup costs the same whether
// the vocabulary has three of them or thousands.
type finder struct {
	first [256]bool        // bytes that a token begins with
	edges map[uint64]int32 // node<<8|byte -> node; node 0 is the root
	ids   []ID             // by node; none where no token ends
	max   int              // bytes of the longest token
}

func newFinder() *finder {
	return &finder{edges: map[uint64]int32{}, ids: []ID{none}}
}

// add keeps the lowest id where two tokens are spelt alike.
func (f *finder) add(text string, id ID) {
	if text == "" {
		return
	}
	f.first[text[0]] = true
	f.max = max(f.max, len(text))
	node := int32(0)
	for i := range len(text) {
		edge := uint64(node)<<8 | uint64(text[i])
		next, ok := f.edges[edge]
		if !ok {
			next = int32(len(f.ids))
			f.ids = append(f.ids, none)
			f.edges[edge] = next
		}
		node = next
	}
	if f.ids[node] == none {
		f.ids[node] = id
	}
}

// find returns where the next token begins, its size in bytes and its id; without one,
// the end of the text, 0 and none.
func (f *finder) find(text string) (off, size int, id ID) {
	for off := range len(text) {
		if !f.first[text[off]] {
			continue
		}
		if size, id := f.at(text[off:]); id != none {
			return off, size, id
		}
	}
	return len(text), 0, none
}

func (f *finder) at(text string) (size int, id ID) {
	node, id := int32(0), none
	for i := range len(text) {
		next, ok := f.edges[uint64(node)<<8|uint64(text[i])]
		if !ok {
			break
		}
		if node = next; f.ids[node] != none {
			size, id = i+1, f.ids[node]
		}
	}
	return size, id
}

// begins reports whether some token begins with the text, or is it.
func (f *finder) begins(text string) bool {
	node := int32(0)
	for i := range len(text) {
		next, ok := f.edges[uint64(node)<<8|uint64(text[i])]
		if !ok {
			return false
		}
		node = next
	}
	return true
}
