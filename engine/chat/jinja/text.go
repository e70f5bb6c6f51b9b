package jinja

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// print writes v as {{ v }} shows it.
func (m *machine) print(b *buffer, v Value) {
	switch v := bare(v).(type) {
	case string:
		b.add(v)
	case undefined:
	default:
		m.writeRepr(b, v)
	}
}

func (m *machine) str(v Value) string {
	if s, ok := bare(v).(string); ok {
		return s
	}
	b := &buffer{m: m}
	m.print(b, v)
	return b.b.String()
}

func (m *machine) repr(v Value) string {
	b := &buffer{m: m}
	m.writeRepr(b, v)
	return b.b.String()
}

// writeRepr writes v as Python's repr does.
func (m *machine) writeRepr(b *buffer, v Value) {
	m.enter()
	defer m.leave()
	switch v := v.(type) {
	case nil:
		b.add("None")
	case bool:
		b.add(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.add(strconv.FormatInt(v, 10))
	case bigInt:
		b.add(string(v))
	case float64:
		b.add(floatText(v, "inf", "nan"))
	case string:
		m.spend(4 * len(v))
		b.add(quote(v))
	case markup:
		b.add("Markup(")
		m.writeRepr(b, string(v))
		b.add(")")
	case undefined:
		b.add("Undefined")
	case *List:
		writeList(b, v)
	case *Dict:
		b.add("{")
		for i, k := range v.keys {
			if i > 0 {
				b.add(", ")
			}
			m.writeRepr(b, k)
			b.add(": ")
			m.writeRepr(b, v.values[i])
		}
		b.add("}")
	case *loop:
		b.add(fmt.Sprintf("<LoopContext %d/%d>", v.at+1, len(v.items)))
	case namespace:
		b.add("<Namespace ")
		m.writeRepr(b, v.Dict)
		b.add(">")
	default:
		b.add("<" + typeName(v) + ">")
	}
}

func writeList(b *buffer, l *List) {
	if l.view != "" {
		before, after, all := strings.Cut(l.view, "%s")
		b.add(before)
		if all {
			b.m.writeRepr(b, &List{Items: l.Items})
		}
		b.add(after)
		return
	}
	open, end := "[", "]"
	if l.tuple {
		open, end = "(", ")"
		if len(l.Items) == 1 {
			end = ",)"
		}
	}
	b.add(open)
	for i, x := range l.Items {
		if i > 0 {
			b.add(", ")
		}
		b.m.writeRepr(b, x)
	}
	b.add(end)
}

// floatText is Python's shortest text of a float.
func floatText(f float64, inf, nan string) string {
	switch {
	case math.IsNaN(f):
		return nan
	case math.IsInf(f, 1):
		return inf
	case math.IsInf(f, -1):
		return "-" + inf
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.ContainsRune(s, '.') {
		s += ".0"
	}
	return s
}

// isMark tells whether a rune is one that package token puts into text that must stay text. It is not the
// template's business: no escape may show it.
func isMark(r rune) bool { return '\uFDD0' <= r && r <= '\uFDD2' }

// quote is Python's repr of a string.
func quote(s string) string {
	q := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		q = '"'
	}
	var b strings.Builder
	b.WriteRune(q)
	for _, r := range s {
		switch {
		case r == q || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || isMark(r) || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + hexDigits(r, 2))
		case r < 0x10000:
			b.WriteString(`\u` + hexDigits(r, 4))
		default:
			b.WriteString(`\U` + hexDigits(r, 8))
		}
	}
	b.WriteRune(q)
	return b.String()
}

func hexDigits(r rune, width int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// jsonStyle is how tojson writes.
type jsonStyle struct {
	item, key, indent string
	newlines          bool
	ascii, sort       bool
}

// writeJSON writes v as Python's json.dumps does.
func (m *machine) writeJSON(b *buffer, v Value, st *jsonStyle, level int) {
	m.enter()
	defer m.leave()
	switch v := bare(v).(type) {
	case nil:
		b.add("null")
	case bool:
		b.add(strconv.FormatBool(v))
	case int64:
		b.add(strconv.FormatInt(v, 10))
	case bigInt:
		b.add(string(v))
	case float64:
		b.add(floatText(v, "Infinity", "NaN"))
	case string:
		m.spend(2 * len(v))
		b.add(jsonString(v, st.ascii))
	case *List:
		m.writeJSONs(b, "[", "]", len(v.Items), st, level, func(i int) {
			m.writeJSON(b, v.Items[i], st, level+1)
		})
	case *Dict:
		order := make([]int, len(v.keys))
		for i := range order {
			order[i] = i
		}
		if st.sort {
			slices.SortStableFunc(order, func(i, j int) int { return m.order(v.keys[i], v.keys[j]) })
		}
		m.writeJSONs(b, "{", "}", len(v.keys), st, level, func(i int) {
			i = order[i]
			switch k := bare(v.keys[i]).(type) {
			case string:
				m.spend(2 * len(k))
				b.add(jsonString(k, st.ascii))
			case nil, bool, int64, bigInt, float64:
				b.add(`"`)
				m.writeJSON(b, k, st, level+1)
				b.add(`"`)
			default:
				m.fail("tojson: %s can't be a key", typeName(k))
			}
			b.add(st.key)
			m.writeJSON(b, v.values[i], st, level+1)
		})
	case undefined:
		m.fail("tojson: %s", v.what)
	default:
		m.fail("tojson: %s has no JSON", typeName(v))
	}
}

func (m *machine) writeJSONs(b *buffer, open, end string, n int, st *jsonStyle, level int, write func(i int)) {
	b.add(open)
	newline := func(level int) {
		if st.newlines {
			b.add("\n")
			b.add(m.repeat(st.indent, int64(level)))
		}
	}
	for i := range n {
		if i > 0 {
			b.add(st.item)
		}
		newline(level + 1)
		write(i)
	}
	if n > 0 {
		newline(level)
	}
	b.add(end)
}

func jsonString(s string, ascii bool) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		i := strings.IndexRune("\"\\\n\r\t\b\f", r)
		switch {
		case i >= 0 && r != utf8.RuneError:
			b.WriteByte('\\')
			b.WriteByte(`"\nrtbf`[i])
		case isMark(r):
			b.WriteRune(r)
		case r < 0x20, ascii && r > 0x7e && r < 0x10000:
			b.WriteString(`\u` + hexDigits(r, 4))
		case ascii && r >= 0x10000:
			r -= 0x10000
			b.WriteString(`\u` + hexDigits(0xd800+r>>10, 4) + `\u` + hexDigits(0xdc00+r&0x3ff, 4))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// order is less for sorting.
func (m *machine) order(a, b Value) int {
	switch {
	case m.less(a, b):
		return -1
	case m.less(b, a):
		return 1
	}
	return 0
}
