package jinja

import (
	"html"
	"slices"
	"strings"
)

// markup is a string that filters such as safe call HTML. Nothing is escaped where a template prints, but what joins markup is.
type markup string

// bare makes a plain string of markup; all else stays.
func bare(v Value) Value {
	if s, ok := v.(markup); ok {
		return string(s)
	}
	return v
}

// asMarkup makes markup of a string, and of the strings in a list; all else stays.
func asMarkup(v Value) Value {
	switch v := v.(type) {
	case string:
		return markup(v)
	case *List:
		l := &List{Items: slices.Clone(v.Items), tuple: v.tuple}
		for i, x := range l.Items {
			l.Items[i] = asMarkup(x)
		}
		return l
	}
	return v
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

// escape makes markup of any value: markup stays, text is escaped.
func escape(m *machine, v Value) markup {
	if s, ok := v.(markup); ok {
		return s
	}
	s := m.str(v)
	m.spend(m.mul(5, len(s)))
	return markup(escaper.Replace(s))
}

// textOf is a value as text; markup stays.
func textOf(m *machine, v Value) Value {
	if s, ok := v.(markup); ok {
		return s
	}
	return m.str(v)
}

// keeping makes markup of what a filter makes of markup.
func keeping(f filterFunc) filterFunc {
	return func(m *machine, v Value, a args) Value {
		out := f(m, v, a)
		if s, ok := out.(string); ok {
			if _, ok := v.(markup); ok {
				return markup(s)
			}
		}
		return out
	}
}

func filterEscape(m *machine, v Value, a args) Value      { return escape(m, v) }
func filterForceEscape(m *machine, v Value, a args) Value { return escape(m, m.str(v)) }
func filterSafe(m *machine, v Value, a args) Value        { return markup(m.str(v)) }

// markupArith is arith where one side is markup; false for all else.
func markupArith(m *machine, op string, l, r Value) (Value, bool) {
	x, left := l.(markup)
	y, right := r.(markup)
	switch _, plain := bare(l).(string); {
	case !left && !right:
		return nil, false
	case op == "%" && left:
		return markup((&formatter{m: m, escape: true}).percent(string(x), r)), true
	case op == "*":
		return asMarkup(m.arith(op, bare(l), bare(r))), true
	case op == "+" && right && plain:
		return escape(m, l) + y, true
	case op == "+" && left:
		if _, ok := bare(r).(string); ok {
			return x + escape(m, r), true
		}
	}
	return m.arith(op, bare(l), bare(r)), true
}

// markupMethod finds a method of markup: a string's, of which text is markup too.
func markupMethod(s markup, name string) func(m *machine, a args) Value {
	switch name {
	case "format":
		return func(m *machine, a args) Value {
			return markup((&formatter{m: m, escape: true, args: a}).format(string(s)))
		}
	case "join":
		return func(m *machine, a args) Value {
			items := m.clone(m.iterate(m.operand("join", a)))
			for i, x := range items {
				items[i] = string(escape(m, x))
			}
			return asMarkup(stringJoin(m, string(s), args{pos: []Value{&List{Items: items}}}))
		}
	case "unescape":
		return func(m *machine, a args) Value { m.spend(len(s)); return html.UnescapeString(string(s)) }
	case "striptags":
		return func(m *machine, a args) Value { return stripTags(m, string(s)) }
	}
	f := stringMethods[name]
	if f == nil {
		return nil
	}
	return func(m *machine, a args) Value {
		if name == "replace" && len(a.pos) > 1 { // what comes in is escaped, what goes out was
			a.pos = m.clone(a.pos)
			a.pos[1] = string(escape(m, a.pos[1]))
		}
		return asMarkup(f(m, string(s), a))
	}
}

// stripTags leaves out comments and tags, and makes one space of white space.
func stripTags(m *machine, s string) string {
	m.spend(m.mul(32, len(s)))
	s = without(without(s, "<!--", "-->"), "<", ">")
	return html.UnescapeString(strings.Join(strings.FieldsFunc(s, isSpace), " "))
}

// without leaves out what stands from begin to end, both included.
func without(s, begin, end string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, begin)
		_, after, ends := strings.Cut(rest, end)
		if !found || !ends {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(before)
		s = after
	}
}

func filterStripTags(m *machine, v Value, a args) Value { return stripTags(m, m.str(v)) }

// filterXMLAttr writes a dict as attributes of HTML.
func filterXMLAttr(m *machine, v Value, a args) Value {
	p := m.take("xmlattr", a, "autospace")
	d, ok := v.(*Dict)
	if !ok {
		m.fail("xmlattr of %s, wanted a dict", m.describe(v))
	}
	b := &buffer{m: m}
	for i, k := range d.keys {
		m.step(1)
		if _, no := d.values[i].(undefined); no || d.values[i] == nil {
			continue
		}
		name := m.str(k)
		if strings.ContainsAny(name, " \t\n\r\f/>=") {
			m.fail("xmlattr: %q can't be an attribute's name", name)
		}
		if b.b.Len() > 0 || len(a.pos)+len(a.kw) == 0 || m.truth(p[0]) {
			b.add(" ")
		}
		b.add(string(escape(m, name)) + `="` + string(escape(m, d.values[i])) + `"`)
	}
	return b.b.String()
}

// filterURLEncode quotes text for a URL, or writes a dict or pairs as its query.
func filterURLEncode(m *machine, v Value, a args) Value {
	quote := func(v Value, safe string) string {
		s := strings.Map(func(r rune) rune {
			if isMark(r) {
				return -1
			}
			return r
		}, m.str(v))
		m.spend(m.mul(3, len(s)))
		var b strings.Builder
		for i := range len(s) {
			switch c := s[i]; {
			case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', strings.IndexByte("_.-~"+safe, c) >= 0:
				b.WriteByte(c)
			default:
				b.WriteString("%" + strings.ToUpper(hexDigits(rune(c), 2)))
			}
		}
		return b.String()
	}
	var pairs []Value
	switch v := v.(type) {
	case *Dict:
		pairs = m.pairs(v)
	case *List:
		pairs = v.Items
	default:
		return quote(v, "/")
	}
	b := &buffer{m: m}
	for i, x := range pairs {
		if i > 0 {
			b.add("&")
		}
		for j, part := range m.unpack(x, 2) {
			if j > 0 {
				b.add("=")
			}
			b.add(strings.ReplaceAll(quote(part, ""), "%20", "+"))
		}
	}
	return b.b.String()
}
