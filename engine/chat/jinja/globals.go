package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// globals are the names that a template finds beside its data.
func globals(now func() time.Time) map[string]Value {
	fn := func(name string, call func(m *machine, a args) Value) function { return function{name, call} }
	return map[string]Value{
		"range":     fn("range", globalRange),
		"dict":      fn("dict", func(m *machine, a args) Value { return m.newDict("dict", a) }),
		"namespace": fn("namespace", func(m *machine, a args) Value { return namespace{m.newDict("namespace", a)} }),
		"joiner":    fn("joiner", globalJoiner),
		"cycler":    fn("cycler", globalCycler),
		"raise_exception": fn("raise_exception", func(m *machine, a args) Value {
			panic(&Error{m.line, &Refusal{m.str(m.take("raise_exception", a, "message")[0])}})
		}),
		"strftime_now": fn("strftime_now", func(m *machine, a args) Value {
			return m.strftime(now(), m.str(m.take("strftime_now", a, "format")[0]))
		}),
	}
}

func globalRange(m *machine, a args) Value {
	p := make([]int64, len(a.pos))
	for i, v := range a.pos {
		if v == nil {
			m.fail("range: found none, wanted an integer")
		}
		p[i] = m.int("range", v, 0)
	}
	lo, hi, step := int64(0), int64(0), int64(1)
	switch len(p) {
	case 1:
		hi = p[0]
	case 2:
		lo, hi = p[0], p[1]
	case 3:
		lo, hi, step = p[0], p[1], p[2]
	default:
		m.fail("range takes 1 to 3 arguments, found %d", len(p))
	}
	if step == 0 {
		m.fail("range's step is zero")
	}
	l := &List{view: fmt.Sprintf("range(%d, %d)", lo, hi)}
	if step != 1 {
		l.view = fmt.Sprintf("range(%d, %d, %d)", lo, hi, step)
	}
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		if len(l.Items) >= maxRange {
			m.fail("%w: a range has more than %d items", ErrLimit, maxRange)
		}
		m.spend(16)
		l.Items = append(l.Items, i)
		if step > 0 && i > i+step || step < 0 && i < i+step {
			break
		}
	}
	return l
}

// newDict makes a dict of a dict or of pairs, and of named arguments.
func (m *machine) newDict(f string, a args) *Dict {
	d := &Dict{}
	if len(a.pos) > 1 {
		m.fail("%s takes at most 1 argument without a name, found %d", f, len(a.pos))
	}
	for _, v := range a.pos {
		if u, ok := v.(undefined); ok {
			m.fail("%s", u.what)
		}
		m.update(d, v)
	}
	for i, n := range a.names {
		m.put(d, n, a.kw[i])
	}
	return d
}

func (m *machine) update(d *Dict, v Value) {
	if from, ok := v.(*Dict); ok {
		for i, k := range from.keys {
			m.put(d, k, from.values[i])
		}
		return
	}
	for _, x := range m.iterate(v) {
		kv := m.unpack(x, 2)
		m.put(d, kv[0], kv[1])
	}
}

func globalJoiner(m *machine, a args) Value {
	sep := m.take("joiner", a, "sep")[0]
	if sep == nil {
		sep = ", "
	}
	used := false
	return function{"joiner", func(m *machine, a args) Value {
		if !used {
			used = true
			return ""
		}
		return sep
	}}
}

func globalCycler(m *machine, a args) Value {
	if len(a.pos) == 0 {
		m.fail("cycler wants items")
	}
	at := 0
	o := object{"current": a.pos[0]}
	o["next"] = function{"next", func(m *machine, _ args) Value {
		v := a.pos[at]
		at = (at + 1) % len(a.pos)
		o["current"] = a.pos[at]
		return v
	}}
	o["reset"] = function{"reset", func(m *machine, _ args) Value {
		at, o["current"] = 0, a.pos[0]
		return nil
	}}
	return o
}

// layouts are C's conversions as time.Format writes them.
var layouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM",
	'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'j': "002", 'Z': "MST", 'z': "-0700",
	'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// strftime writes t as C's function of that name does.
func (m *machine) strftime(t time.Time, format string) string {
	m.spend(m.mul(32, len(format)))
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		bare := format[i] == '-' && i+1 < len(format) // without leading zeros
		if bare {
			i++
		}
		switch layout, ok := layouts[format[i]]; {
		case format[i] == '%':
			b.WriteByte('%')
		case format[i] == 'f':
			fmt.Fprintf(&b, "%06d", t.Nanosecond()/1000)
		case format[i] == 'n':
			b.WriteByte('\n')
		case strings.IndexByte("sUWwuGVgCklP", format[i]) >= 0:
			b.WriteString(calendar(t, format[i], bare))
		case !ok:
			m.fail("strftime_now: %%%c is not supported", format[i])
		case bare:
			s := strings.TrimLeft(t.Format(layout), "0 ")
			if s == "" {
				s = "0"
			}
			b.WriteString(s)
		default:
			b.WriteString(t.Format(layout))
		}
	}
	return b.String()
}

// calendar writes those conversions of strftime that time.Format has not; bare: without leading zeros.
func calendar(t time.Time, conv byte, bare bool) string {
	year, week := t.ISOWeek()
	weekday := int(t.Weekday())
	n, layout := 0, "%02d"
	switch conv {
	case 's':
		return strconv.FormatInt(t.Unix(), 10)
	case 'P':
		return t.Format("pm")
	case 'U': // weeks that begin on Sunday
		n = (t.YearDay() + 6 - weekday) / 7
	case 'W': // on Monday
		n = (t.YearDay() + 6 - (weekday+6)%7) / 7
	case 'w':
		n, layout = weekday, "%d"
	case 'u':
		n, layout = (weekday+6)%7+1, "%d"
	case 'G':
		n, layout = year, "%d"
	case 'V':
		n = week
	case 'g':
		n = year % 100
	case 'C':
		n = t.Year() / 100
	case 'k':
		n, layout = t.Hour(), "%2d"
	case 'l':
		n, layout = (t.Hour()+11)%12+1, "%2d"
	}
	if bare {
		layout = "%d"
	}
	return fmt.Sprintf(layout, n)
}

func decodeJSON(s string) (Value, error) {
	if !json.Valid([]byte(s)) {
		return nil, fmt.Errorf("found %.40q, wanted JSON", s)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(s)))
	dec.UseNumber()
	v, err := fromJSON(dec, func(s string) string { return s })
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return v, err
}
