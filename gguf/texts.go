package gguf

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
)

// texts is an array of strings as it stands in the file. It becomes a slice when somebody asks for the strings: a vocabulary has hundreds of thousands, and who lists a
// file's keys wants none of them.
type texts struct {
	raw  string // each string's length in 8 bytes, then its bytes; checked
	n    int    // number of strings
	once sync.Once
	list []string
}

// strings is the array as a slice. Its strings share the memory of raw.
func (t *texts) strings() []string {
	t.once.Do(func() {
		t.list = make([]string, t.n)
		rest := t.raw
		for i := range t.list {
			n := binary.LittleEndian.Uint64([]byte(rest[:8])) + 8
			t.list[i], rest = rest[8:n], rest[n:]
		}
	})
	return t.list
}

// texts reads an array of n strings. It checks them as [reader.str] does, and does not make them.
func (r *reader) texts(n uint64, what string) *texts {
	var raw strings.Builder // grows with what is read, whatever the lengths say
	empty := 0
	for read := uint64(0); read < n; {
		more := int64(0) // bytes of memory
		strings, bytes, empties := wholeTexts(r.buffered(), n-read)
		if strings == 0 { // the next one is longer than what is buffered
			size := r.u64(what)
			raw.Write(r.buf[:])
			if r.err != nil || !r.copyText(&raw, size, what) {
				return nil
			}
			strings = 1
		} else {
			r.copyBuffered(&raw, bytes)
			more = int64(bytes)
		}
		read += strings
		if !r.take(int64(strings)*stringBytes+more, "an array") {
			return nil
		}
		if empty += empties; empty >= maxEmpty {
			r.fail(badf(r.off, what, fmt.Sprintf("%d empty strings", empty), "fewer"))
			return nil
		}
	}
	return &texts{raw: raw.String(), n: int(n)}
}

// buffered is what is read from the file already and not used; a few bytes at least, unless the header ends.
func (r *reader) buffered() []byte {
	r.br.Peek(8)
	p, _ := r.br.Peek(r.br.Buffered())
	return p
}

// copyBuffered moves n of the buffered bytes into b.
func (r *reader) copyBuffered(b *strings.Builder, n int) {
	p, _ := r.br.Peek(n)
	b.Write(p)
	r.br.Discard(n)
	r.off += int64(n)
}

// wholeTexts counts the strings at the beginning of p, most at most, their bytes with their lengths, and the empty ones among them.
func wholeTexts(p []byte, most uint64) (n uint64, bytes, empty int) {
	for n < most && len(p)-bytes >= 8 {
		size := binary.LittleEndian.Uint64(p[bytes:])
		if size > uint64(len(p)-bytes-8) {
			break
		}
		if size == 0 {
			empty++
		}
		bytes += 8 + int(size)
		n++
	}
	return n, bytes, empty
}
