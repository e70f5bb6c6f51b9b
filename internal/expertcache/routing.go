package expertcache

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Header says what a routing trace is of; it is the file's first line, as JSON. Behind it stands a
// record for each step: the number of rows as uint32, then for each row and layer, in this
// order, Used ids as uint16, all little-endian. An id of 0xffff is none.
type Header struct {
	Format  string `json:"format"` // RoutingFormat
	Model   string `json:"model"`
	Layers  int    `json:"layers"`                 // those that have experts, in order
	Experts int    `json:"experts"`                // of a layer
	Used    int    `json:"experts_used"`           // by a token, in each layer
	Bytes   int64  `json:"expert_bytes,omitempty"` // of the largest expert; 0: not known
}

// RoutingFormat is the first line's format.
const RoutingFormat = "leat-routing-1"

// NoExpert stands where a token used fewer experts.
const NoExpert = 0xffff

// mostRows bounds a step of a file.
const mostRows = 1 << 16

func (h *Header) check() error {
	const most, mostName = 1 << 12, 512 // what JSON makes of such a name is read back through one buffer
	switch {
	case len(h.Model) > mostName:
		return fmt.Errorf("model: found a name of %d bytes, wanted at most %d", len(h.Model), mostName)
	case h.Format != RoutingFormat:
		return fmt.Errorf("format: found %q, wanted %q", h.Format, RoutingFormat)
	case h.Layers < 1 || h.Layers > most || h.Experts < 1 || h.Experts >= NoExpert || h.Used < 1 || h.Used > min(h.Experts, most):
		return fmt.Errorf("found %d layers of %d experts, %d of them used, wanted at least one of each, no more used than there are, and at most %d", h.Layers, h.Experts, h.Used, most)
	}
	return nil
}

// Step is the routing of one step: ids (Rows, Layers, Used).
type Step struct {
	Rows int
	IDs  []uint16
}

// Writer writes a trace.
type Writer struct {
	w   *bufio.Writer
	h   Header
	buf []byte
}

// NewWriter writes the header.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Format = RoutingFormat
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("write a routing trace: %w", err)
	}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	t := &Writer{w: bufio.NewWriter(w), h: h}
	_, err = t.w.Write(append(line, '\n'))
	return t, err
}

// Write adds a step.
func (t *Writer) Write(s Step) error {
	if s.Rows < 1 || s.Rows > mostRows || len(s.IDs) != s.Rows*t.h.Layers*t.h.Used {
		return fmt.Errorf("write a routing trace: found %d ids of %d rows, wanted %d layers of %d each", len(s.IDs), s.Rows, t.h.Layers, t.h.Used)
	}
	t.buf = binary.LittleEndian.AppendUint32(t.buf[:0], uint32(s.Rows))
	for _, id := range s.IDs {
		t.buf = binary.LittleEndian.AppendUint16(t.buf, id)
	}
	_, err := t.w.Write(t.buf)
	return err
}

// Flush must come last.
func (t *Writer) Flush() error { return t.w.Flush() }

// Reader reads a trace.
type Reader struct {
	r   *bufio.Reader
	h   Header
	ids []uint16
	buf []byte
}

// NewReader reads the header.
func NewReader(r io.Reader) (*Reader, error) {
	t := &Reader{r: bufio.NewReader(r)}
	line, err := t.r.ReadSlice('\n') // fails where it is longer than a buffer
	if err == nil {
		err = json.Unmarshal(line, &t.h)
	}
	if err == nil {
		err = t.h.check()
	}
	if err != nil {
		return nil, fmt.Errorf("read a routing trace: its first line: %w", err)
	}
	return t, nil
}

// Header says what the trace is of.
func (t *Reader) Header() Header { return t.h }

// Next returns the next step, or io.EOF after the last. Its ids are valid until the next call.
func (t *Reader) Next() (Step, error) {
	var rows [4]byte
	if _, err := io.ReadFull(t.r, rows[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return Step{}, io.EOF
		}
		return Step{}, fmt.Errorf("read a routing trace: %w", err)
	}
	n := binary.LittleEndian.Uint32(rows[:])
	if n < 1 || n > mostRows {
		return Step{}, fmt.Errorf("read a routing trace: found a step of %d rows, wanted 1 to %d", n, mostRows)
	}
	t.ids = t.ids[:0]
	row := t.h.Layers * t.h.Used
	for range n { // a row at a time: the number of rows may be a lie
		t.buf = append(t.buf[:0], make([]byte, 2*row)...)
		if _, err := io.ReadFull(t.r, t.buf); err != nil {
			return Step{}, fmt.Errorf("read a routing trace: a step of %d rows is cut off: %w", n, io.ErrUnexpectedEOF)
		}
		for i := range row {
			id := binary.LittleEndian.Uint16(t.buf[2*i:])
			if int(id) >= t.h.Experts && id != NoExpert {
				return Step{}, fmt.Errorf("read a routing trace: found expert %d, wanted less than %d", id, t.h.Experts)
			}
			t.ids = append(t.ids, id)
		}
	}
	return Step{int(n), t.ids}, nil
}

// Routing is a trace in memory.
type Routing struct {
	Header
	Steps []Step
}

// ReadRouting reads a whole trace.
func ReadRouting(r io.Reader) (*Routing, error) {
	t, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	all := &Routing{Header: t.h}
	for {
		s, err := t.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		s.IDs = append([]uint16(nil), s.IDs...)
		all.Steps = append(all.Steps, s)
	}
}

// distinct appends the different experts that a step uses in a layer, in order of appearance.
// seen has room for all of a layer's, and is all false before and after.
func (h *Header) distinct(s Step, layer int, seen []bool, ids []int32) []int32 {
	from := len(ids)
	for row := range s.Rows {
		at := (row*h.Layers + layer) * h.Used
		for _, id := range s.IDs[at : at+h.Used] {
			if id != NoExpert && !seen[id] {
				seen[id] = true
				ids = append(ids, int32(id))
			}
		}
	}
	for _, id := range ids[from:] {
		seen[id] = false
	}
	return ids
}

// Uses is how often each expert of each layer was used, by a token each time: (Layers, Experts).
type Uses struct {
	h     Header
	count []int64
}

// NewUses has none counted.
func NewUses(h Header) *Uses { return &Uses{h, make([]int64, h.Layers*h.Experts)} }

// Add counts a step's.
func (u *Uses) Add(s Step) {
	for i, id := range s.IDs {
		if id != NoExpert {
			u.count[i/u.h.Used%u.h.Layers*u.h.Experts+int(id)]++
		}
	}
}

// Layers are the counts by layer.
func (u *Uses) Layers() [][]int64 {
	list := make([][]int64, u.h.Layers)
	for l := range list {
		list[l] = u.count[l*u.h.Experts:][:u.h.Experts]
	}
	return list
}
