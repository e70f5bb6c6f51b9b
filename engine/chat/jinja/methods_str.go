package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// want is a method's one argument, a string.
func (m *machine) want(f string, a args) string {
	s, ok := bare(m.operand(f, a)).(string)
	if !ok {
		m.fail("%s: found %s, wanted a string", f, m.describe(a.pos[0]))
	}
	return s
}

func mapped(f func(string) string) stringMethod {
	return func(m *machine, s string, a args) Value {
		m.spend(m.mul(3, len(s)))
		return f(s)
	}
}

func pythonTitle(s string) string {
	word := false
	return strings.Map(func(r rune) rune {
		first := !word
		if word = unicode.IsLetter(r); first {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

func justify(left, right bool) stringMethod {
	return func(m *machine, s string, a args) Value {
		p := m.take("justify", a, "width", "fillchar")
		fill := " "
		if p[1] != nil {
			fill = m.str(p[1])
		}
		n := max(0, m.int("justify", p[0], 0)-int64(m.length(s)))
		before := int64(0)
		switch {
		case left && right:
			before = n/2 + n&m.int("justify", p[0], 0)&1 // as CPython splits what is odd
		case left:
			before = n
		}
		m.spend(len(s))
		return m.repeat(fill, before) + s + m.repeat(fill, n-before)
	}
}

func affix(has func(s, affix string) bool) stringMethod {
	return func(m *machine, s string, a args) Value {
		p := m.take("startswith", a, "affix", "start", "end")
		if p[1] != nil || p[2] != nil {
			s = m.window(s, p[1], p[2])
		}
		l, ok := p[0].(*List)
		if !ok || !l.tuple {
			x, ok := bare(p[0]).(string)
			if !ok {
				m.fail("startswith: found %s, wanted a string or a tuple of them", m.describe(p[0]))
			}
			m.scan(len(x))
			return has(s, x)
		}
		for _, x := range l.Items {
			m.step(1)
			m.scan(len(s))
			if has(s, m.str(x)) {
				return true
			}
		}
		return false
	}
}

// window is s[lo:hi].
func (m *machine) window(s string, lo, hi Value) string {
	m.scan(len(s))
	n := utf8.RuneCountInString(s)
	var part [3]*int64
	for i, v := range []Value{lo, hi} {
		if v != nil {
			x := m.int("find", v, 0)
			part[i] = &x
		}
	}
	from, to, _ := m.bounds(part, n)
	return runesFrom(s, from, max(from, to))
}

func found(search func(s, sub string) int, must bool) stringMethod {
	return func(m *machine, s string, a args) Value {
		p := m.take("find", a, "sub", "start", "end")
		m.scan(len(s))
		in, skipped := s, 0
		if p[1] != nil || p[2] != nil {
			in = m.window(s, p[1], p[2])
			skipped = m.length(s) - m.length(m.window(s, p[1], nil))
		}
		i := search(in, m.want("find", args{pos: p[:1]}))
		if i < 0 && must {
			m.fail("index: no such part in the string")
		}
		if i < 0 {
			return int64(-1)
		}
		return int64(skipped + utf8.RuneCountInString(in[:i]))
	}
}

func all(f func(rune) bool) stringMethod {
	return func(m *machine, s string, a args) Value {
		m.scan(len(s))
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0
	}
}

func stringJoin(m *machine, s string, a args) Value {
	b := &buffer{m: m}
	for i, x := range m.iterate(m.operand("join", a)) {
		m.step(1)
		if i > 0 {
			b.add(s)
		}
		part, ok := bare(x).(string)
		if !ok {
			m.fail("join: found %s among the items, wanted strings", m.describe(x))
		}
		b.add(part)
	}
	return b.b.String()
}

func (m *machine) strip(s string, chars Value, left, right bool) string {
	m.scan(len(s))
	set := isSpace
	if chars != nil {
		cut := m.str(chars)
		m.scan(m.mul(len(s), len(cut)))
		set = func(r rune) bool { return strings.ContainsRune(cut, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, set)
	}
	if right {
		s = strings.TrimRightFunc(s, set)
	}
	return s
}

func strip(left, right bool) stringMethod {
	return func(m *machine, s string, a args) Value {
		return m.strip(s, m.take("strip", a, "chars")[0], left, right)
	}
}

func partition(search func(s, sub string) int, last bool) stringMethod {
	return func(m *machine, s string, a args) Value {
		sep := m.want("partition", a)
		m.scan(len(s))
		parts := []Value{s, "", ""}
		if i := search(s, sep); i >= 0 {
			parts = []Value{s[:i], sep, s[i+len(sep):]}
		} else if last {
			parts = []Value{"", "", s}
		}
		return &List{Items: parts, tuple: true}
	}
}

func stringReplace(m *machine, s string, a args) Value {
	p := m.take("replace", a, "old", "new", "count")
	old, with := m.want("replace", args{pos: p[:1]}), m.want("replace", args{pos: p[1:2]})
	limit := m.int("replace", p[2], -1)
	n := strings.Count(s, old)
	if limit >= 0 {
		n = int(min(int64(n), limit))
	}
	m.spend(len(s) + m.mul(n, len(with)+1))
	return strings.Replace(s, old, with, n)
}

func split(right bool) stringMethod {
	return func(m *machine, s string, a args) Value {
		p := m.take("split", a, "sep", "maxsplit")
		limit := m.int("split", p[1], -1)
		m.spend(len(s))
		var parts []string
		if p[0] == nil {
			parts = m.fields(s, limit, right)
		} else {
			sep := m.want("split", args{pos: p[:1]})
			if sep == "" {
				m.fail("split: the separator is empty")
			}
			m.spend(m.mul(48, strings.Count(s, sep)+1))
			parts = splitOn(s, sep, limit, right)
		}
		l := &List{Items: make([]Value, len(parts))}
		for i, part := range parts {
			l.Items[i] = part
		}
		return l
	}
}

func splitOn(s, sep string, limit int64, right bool) []string {
	if limit < 0 {
		return strings.Split(s, sep)
	}
	if !right {
		return strings.SplitN(s, sep, int(min(limit, int64(len(s))))+1)
	}
	var parts []string
	for ; limit > 0; limit-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append(parts, s[i+len(sep):])
		s = s[:i]
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return parts
}

// fields splits at white space, into limit+1 parts if limit is not negative.
func (m *machine) fields(s string, limit int64, right bool) []string {
	m.spend(m.mul(24, len(s)))
	all := strings.FieldsFunc(s, isSpace)
	if limit < 0 || int64(len(all)) <= limit {
		return all
	}
	var parts []string
	if right {
		s = strings.TrimRightFunc(s, isSpace)
		for ; limit > 0; limit-- {
			i := strings.LastIndexFunc(s, isSpace)
			_, size := utf8.DecodeRuneInString(s[i:])
			parts = append(parts, s[i+size:])
			s = strings.TrimRightFunc(s[:i], isSpace)
		}
		slices.Reverse(parts)
		return append([]string{s}, parts...)
	}
	s = strings.TrimLeftFunc(s, isSpace)
	for ; limit > 0; limit-- {
		i := strings.IndexFunc(s, isSpace)
		parts = append(parts, s[:i])
		s = strings.TrimLeftFunc(s[i:], isSpace)
	}
	return append(parts, s)
}

func splitLines(m *machine, s string, a args) Value {
	keep := m.truth(m.take("splitlines", a, "keepends")[0])
	m.spend(m.mul(24, len(s)))
	l := &List{}
	for s != "" {
		n := strings.IndexAny(s, "\n\r")
		end := n
		switch {
		case n < 0:
			n, end = len(s), len(s)
		case strings.HasPrefix(s[n:], "\r\n"):
			end += 2
		default:
			end++
		}
		if keep {
			n = end
		}
		l.Items = append(l.Items, s[:n])
		s = s[end:]
	}
	return l
}
