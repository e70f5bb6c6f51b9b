package jinja

import (
	"strconv"
	"strings"
)

// percent is Python's old formatting: '%s of %d' % (a, b).
func (m *machine) percent(format string, v Value) string {
	b := &buffer{m: m}
	list, _ := v.(*List)
	dict, _ := v.(*Dict)
	if list == nil || !list.tuple {
		list = &List{Items: []Value{v}}
	}
	next := 0
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			b.add(format)
			break
		}
		b.add(format[:i])
		format = format[i+1:]
		var arg Value
		keyed := false
		if name, rest, ok := strings.Cut(strings.TrimPrefix(format, "("), ")"); ok && strings.HasPrefix(format, "(") && dict != nil {
			x, found := dict.Get(name)
			if !found {
				m.fail("format: no value for %q", name)
			}
			arg, keyed, format = x, true, rest
		}
		n := strings.IndexFunc(format, func(r rune) bool { return !strings.ContainsRune("-+ #0123456789.", r) })
		if n < 0 {
			m.fail("format: a %% has no conversion")
		}
		spec, conv := format[:n], format[n]
		format = format[n+1:]
		if conv == '%' {
			b.add("%")
			continue
		}
		if !keyed {
			if next >= len(list.Items) {
				m.fail("format: not enough values")
			}
			arg, next = list.Items[next], next+1
		}
		b.add(m.convert(spec, conv, arg))
	}
	if next < len(list.Items) && dict == nil {
		m.fail("format: too many values")
	}
	return b.b.String()
}

// convert writes one value by flags, width and precision in spec, and a conversion.
func (m *machine) convert(spec string, conv byte, v Value) string {
	flags := spec[:len(spec)-len(strings.TrimLeft(spec, "-+ #0"))]
	w, p, hasPrec := strings.Cut(spec[len(flags):], ".")
	width, prec := m.digits(w, 0), m.digits(p, 0)
	if !hasPrec {
		prec = -1
	}
	s := ""
	switch conv {
	case 's':
		s = m.str(v)
	case 'r':
		s = m.repr(v)
	case 'd', 'i', 'u', 'x', 'X', 'o':
		n, ok := filterInt(m, number(v), args{pos: []Value{"none"}}).(int64)
		if _, isString := v.(string); !ok || isString {
			m.fail("format: %s is no number", m.describe(v))
		}
		base := map[byte]int{'x': 16, 'X': 16, 'o': 8}[conv]
		if s = strconv.FormatInt(n, max(base, 10)); base == 8 {
			s = strconv.FormatInt(n, 8)
		}
		if conv == 'X' {
			s = strings.ToUpper(s)
		}
	case 'f', 'F', 'e', 'E', 'g', 'G':
		f, ok := float(v)
		if !ok {
			m.fail("format: %s is no number", m.describe(v))
		}
		if prec < 0 {
			prec = 6
		}
		m.spend(prec + 400)
		s = strconv.FormatFloat(f, conv|0x20, prec, 64)
		prec = -1
	default:
		m.fail("format: %%%c is not supported", conv)
	}
	if prec >= 0 && (conv == 's' || conv == 'r') && prec < m.length(s) {
		s = runesFrom(s, 0, prec)
	}
	if strings.Contains(flags, "+") && conv != 's' && conv != 'r' && !strings.HasPrefix(s, "-") {
		s = "+" + s
	}
	pad := int64(width - m.length(s))
	switch {
	case strings.Contains(flags, "-"):
		return s + m.repeat(" ", pad)
	case strings.Contains(flags, "0") && conv != 's' && conv != 'r':
		sign := s[:len(s)-len(strings.TrimLeft(s, "+-"))]
		return sign + m.repeat("0", pad) + s[len(sign):]
	}
	return m.repeat(" ", pad) + s
}

// digits reads a width; one beyond all limits fails where it is paid for.
func (m *machine) digits(s string, def int) int {
	if s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > defaultBytes {
		m.fail("%w: a width of %.20s", ErrLimit, s)
	}
	m.spend(n)
	return n
}

// format is str.format: {}, {0}, {name}, {0.name[key]}, !r and !s, fill, align, width,
// precision and the types s, d, f, x and their like.
func (m *machine) format(s string, a args) string {
	b := &buffer{m: m}
	auto := int64(0)
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.add(s)
			break
		}
		b.add(s[:i])
		if i+1 < len(s) && s[i+1] == s[i] {
			b.add(s[i : i+1])
			s = s[i+2:]
			continue
		}
		field, rest, ok := strings.Cut(s[i+1:], "}")
		if s[i] == '}' || !ok {
			m.fail("format: a single %q", s[i])
		}
		s = rest
		field, spec, _ := strings.Cut(field, ":")
		field, conv, _ := strings.Cut(field, "!")
		v := m.field(field, a, &auto)
		switch conv {
		case "r":
			v = m.repr(v)
		case "s":
			v = m.str(v)
		}
		b.add(m.aligned(spec, v))
	}
	return b.b.String()
}

func (m *machine) field(field string, a args, auto *int64) Value {
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	head, path := field[:end], field[end:]
	if head == "" {
		head = strconv.FormatInt(*auto, 10)
		*auto++
	}
	v := Value(undefined{"format: no value for " + head})
	if i, err := strconv.Atoi(head); err == nil && i < len(a.pos) && i >= 0 {
		v = a.pos[i]
	}
	for i, n := range a.names {
		if n == head {
			v = a.kw[i]
		}
	}
	if u, ok := v.(undefined); ok {
		m.fail("%s", u.what)
	}
	for path != "" {
		m.step(1)
		key := path[1:]
		if path[0] == '[' {
			var ok bool
			if key, path, ok = strings.Cut(key, "]"); !ok {
				m.fail("format: a single '['")
			}
			if i, err := strconv.ParseInt(key, 10, 64); err == nil {
				v = m.item(v, i)
				continue
			}
		} else {
			end := strings.IndexAny(key, ".[")
			if end < 0 {
				end = len(key)
			}
			key, path = key[:end], key[end:]
		}
		v = m.item(v, key)
	}
	return v
}

func (m *machine) aligned(spec string, v Value) string {
	if spec == "" {
		return m.str(v)
	}
	fill, align := " ", byte(0)
	_, size := firstRune(spec)
	switch {
	case len(spec) > size && strings.IndexByte("<>^", spec[size]) >= 0:
		fill, align, spec = spec[:size], spec[size], spec[size+1:]
	case strings.IndexByte("<>^", spec[0]) >= 0:
		align, spec = spec[0], spec[1:]
	}
	conv := byte('s')
	_, isNumber := float(v)
	if n := len(spec); n > 0 && strings.IndexByte("sdfFeEgGxXo", spec[n-1]) >= 0 {
		conv, spec = spec[n-1], spec[:n-1]
	} else if _, ok := v.(int64); ok {
		conv = 'd'
	}
	if strings.Trim(spec, "+ 0123456789.") != "" {
		m.fail("format: %q is not supported", spec)
	}
	if align == 0 {
		if !isNumber {
			spec = "-" + spec
		}
		return m.convert(spec, conv, v)
	}
	flags := spec[:len(spec)-len(strings.TrimLeft(spec, "+ "))]
	w, p, dot := strings.Cut(spec[len(flags):], ".")
	if dot {
		p = "." + p
	}
	s := m.convert(flags+p, conv, v)
	pad := max(0, m.digits(w, 0)-m.length(s))
	before := map[byte]int{'<': 0, '>': pad, '^': pad / 2}[align]
	return m.repeat(fill, int64(before)) + s + m.repeat(fill, int64(pad-before))
}

func firstRune(s string) (rune, int) {
	for i, r := range s {
		if i > 0 {
			return r, i
		}
	}
	return 0, len(s)
}
