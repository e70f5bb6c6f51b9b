package token

// A symbol is a stretch of the word being merged, in a list linked by index.
type symbol struct {
	start, end int32 // word[start:end]; empty once merged into its left neighbour
	prev, next int32 // -1 at the ends
	id         int32 // what the joiner knows it by
}

// A joiner says which neighbours make a symbol. Of all that do, the lowest rank goes
// first, and of equal ones the leftmost.
type joiner interface {
	join(word string, left, right *symbol) (id int32, rank uint32, ok bool)
}

// candidate is a possible merge, kept in a heap by key: rank, then left.
type candidate struct {
	key  uint64
	left int32
	size int32 // bytes of both halves: tells a stale candidate
	id   int32
}

// merger joins the symbols of one word after another; it keeps its memory in between.
type merger struct {
	joiner joiner
	word   string
	list   []symbol
	heap   []candidate
}

// maxWord bounds the memory of a merge (about 50 bytes a byte); longer words, which no
// text has, are cut.
const maxWord = 16 << 20

// reset begins a word; add its symbols in order, then run.
func (m *merger) reset(word string) {
	m.word, m.list, m.heap = word, m.list[:0], m.heap[:0]
}

func (m *merger) add(size int, id int32) {
	n := int32(len(m.list))
	s := symbol{prev: n - 1, next: -1, id: id}
	if n > 0 {
		m.list[n-1].next = n
		s.start = m.list[n-1].end
	}
	s.end = s.start + int32(size)
	m.list = append(m.list, s)
}

// run merges until nothing joins. What is left are the symbols from list[0] on, by next.
func (m *merger) run() {
	for i := range m.list {
		m.offer(int32(i))
	}
	for len(m.heap) > 0 {
		c := m.pop()
		left := &m.list[c.left]
		if left.start == left.end || left.next < 0 {
			continue
		}
		right := &m.list[left.next]
		if right.end-left.start != c.size {
			continue // one half has grown since
		}
		left.end, left.id, left.next = right.end, c.id, right.next
		right.start = right.end
		if right.next >= 0 {
			m.list[right.next].prev = c.left
		}
		if left.prev >= 0 {
			m.offer(left.prev)
		}
		m.offer(c.left)
	}
}

// offer puts the symbol and its right neighbour on the heap if they join.
func (m *merger) offer(i int32) {
	left := &m.list[i]
	if left.next < 0 {
		return
	}
	right := &m.list[left.next]
	id, rank, ok := m.joiner.join(m.word, left, right)
	if !ok {
		return
	}
	m.push(candidate{key: uint64(rank)<<32 | uint64(i), left: i, size: right.end - left.start, id: id})
}

// The heap is our own, because container/heap boxes every element.
func (m *merger) push(c candidate) {
	m.heap = append(m.heap, c)
	h, i := m.heap, len(m.heap)-1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].key <= c.key {
			break
		}
		h[i], i = h[up], up
	}
	h[i] = c
}

func (m *merger) pop() candidate {
	top, n := m.heap[0], len(m.heap)-1
	c := m.heap[n]
	m.heap = m.heap[:n]
	h, i := m.heap, 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && h[down+1].key < h[down].key {
			down++
		}
		if h[down].key >= c.key {
			break
		}
		h[i], i = h[down], down
	}
	if n > 0 {
		h[i] = c
	}
	return top
}
