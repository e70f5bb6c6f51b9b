package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// formatter is one use of Python's two ways of formatting.
type formatter struct {
	m      *machine
	escape bool  // the format is markup: text among the values is escaped
	args   args  // of str.format
	auto   int64 // the number of its next field without a name
}

// percent is Python's old formatting: '%s of %d' % (a, b).
func (f *formatter) percent(format string, v Value) string {
	m := f.m
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
		if f.escape && (conv == 's' || conv == 'r') {
			if conv == 'r' {
				arg = m.repr(arg)
			}
			arg, conv = string(escape(m, arg)), 's'
		}
		b.add(f.convert(spec, conv, arg))
	}
	if next < len(list.Items) && !hasItems(v) {
		m.fail("format: too many values")
	}
	return b.b.String()
}

// hasItems tells whether a value is looked into by keys: one alone may stand beside a format without a conversion.
func hasItems(v Value) bool {
	switch v := v.(type) {
	case *List:
		return !v.tuple
	case *Dict, undefined:
		return true
	}
	return false
}

// convert writes one value by flags, width and precision in spec, and a conversion.
func (f *formatter) convert(spec string, conv byte, v Value) string {
	sp := numberSpec{fill: " ", align: '>', conv: conv, prec: -1}
	flags := spec[:len(spec)-len(strings.TrimLeft(spec, "-+ #0"))]
	w, p, hasPrec := strings.Cut(spec[len(flags):], ".")
	sp.width = f.digits(w, 0)
	if hasPrec {
		sp.prec = f.digits(p, 0)
	}
	for _, flag := range []byte("0- +#") {
		if strings.IndexByte(flags, flag) >= 0 {
			sp.flag(flag)
		}
	}
	switch conv {
	case 's', 'r', 'a':
		s := f.m.str(v)
		if conv != 's' {
			s = f.m.repr(v)
		}
		return f.pad(sp.forText(), "", f.clip(s, sp.prec))
	case 'c':
		if s, ok := bare(v).(string); ok && f.m.length(s) == 1 {
			return f.pad(sp.forText(), "", s)
		}
	case 'd', 'i', 'u':
		sp.conv = 'd'
		if x, ok := v.(float64); ok {
			v = whole(f.m, x)
		}
	}
	if strings.IndexByte("dxXo", sp.conv) >= 0 {
		sp.least, sp.prec = sp.prec, -1
	}
	return f.number(&sp, v)
}

// flag is one of those that stand before a width in the old formatting.
func (sp *numberSpec) flag(c byte) {
	switch c {
	case '0':
		sp.fill, sp.align = "0", '='
	case '-':
		sp.fill, sp.align = " ", '<'
	case '#':
		sp.alternate = true
	default:
		sp.sign = c
	}
}

// forText is the spec without what is for numbers alone.
func (sp *numberSpec) forText() *numberSpec {
	if sp.align == '=' {
		sp.fill, sp.align = " ", '>'
	}
	return sp
}

// digits reads a width; one beyond all limits fails where it is paid for.
func (f *formatter) digits(s string, def int) int {
	if s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > defaultBytes {
		f.m.fail("%w: a width of %.20s", ErrLimit, s)
	}
	f.m.spend(n)
	return n
}

// format is str.format: {}, {0}, {name}, {0.name[key]}, !r and !s, and what [formatter.formatted] knows after a colon, where fields may stand
// too.
func (f *formatter) format(s string) string {
	m := f.m
	b := &buffer{m: m}
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
		end := fieldEnd(s[i:])
		if end < 0 {
			m.fail("format: a single %q", s[i])
		}
		field, spec, _ := strings.Cut(s[i+1:i+end], ":")
		s = s[i+end+1:]
		field, conv, _ := strings.Cut(field, "!")
		v := f.field(field)
		if strings.Contains(spec, "{") { // fields of one level: those inside have no specs
			spec = f.nested(spec)
		}
		switch conv {
		case "r":
			v = m.repr(v)
		case "s":
			v = textOf(m, v)
		}
		if _, ok := v.(markup); !ok || !f.escape {
			if v = f.formatted(spec, v); f.escape {
				v = escape(m, v)
			}
		}
		b.add(m.str(v))
	}
	return b.b.String()
}

// fieldEnd is where the field that begins s ends; -1: nowhere.
func fieldEnd(s string) int {
	depth := 0
	for i, r := range s {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth <= 0 {
				if depth < 0 {
					return -1
				}
				return i
			}
		}
	}
	return -1
}

// nested fills the fields in a spec.
func (f *formatter) nested(spec string) string {
	b := &buffer{m: f.m}
	for {
		before, rest, ok := strings.Cut(spec, "{")
		b.add(before)
		if !ok {
			return b.b.String()
		}
		field, rest, _ := strings.Cut(rest, "}")
		b.add(f.m.str(f.field(field)))
		spec = rest
	}
}

func (f *formatter) field(field string) Value {
	m, a := f.m, &f.args
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	head, path := field[:end], field[end:]
	if head == "" {
		head = strconv.FormatInt(f.auto, 10)
		f.auto++
	}
	var v Value
	if i, err := strconv.Atoi(head); err == nil && i < len(a.pos) && i >= 0 {
		v = a.pos[i]
	} else if i := slices.Index(a.names, head); i >= 0 {
		v = a.kw[i]
	} else {
		m.fail("format: no value for %s", head)
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
