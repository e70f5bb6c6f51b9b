package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// method finds a method of a string, dict or list, bound to it; nil if there is none.
func method(v Value, name string) func(m *machine, a args) Value {
	switch v := v.(type) {
	case markup:
		return markupMethod(v, name)
	case string:
		if f := stringMethods[name]; f != nil {
			return func(m *machine, a args) Value { return f(m, v, a) }
		}
	case *Dict:
		if f := dictMethods[name]; f != nil {
			return func(m *machine, a args) Value { return f(m, v, a) }
		}
	case *List:
		if f := listMethods[name]; f != nil && (!v.tuple && v.view == "" || name == "count" || name == "index") {
			return func(m *machine, a args) Value { return f(m, v, a) }
		}
	}
	return nil
}

var dictMethods = map[string]func(m *machine, d *Dict, a args) Value{
	"copy":  func(m *machine, d *Dict, a args) Value { m.spend(96 * len(d.keys)); return d.copy() },
	"clear": func(m *machine, d *Dict, a args) Value { *d = Dict{}; return nil },
	"get": func(m *machine, d *Dict, a args) Value {
		p := m.take("get", a, "key", "default")
		if v, ok := m.lookup(d, p[0]); ok {
			return v
		}
		return p[1]
	},
	"items": func(m *machine, d *Dict, a args) Value { return &List{Items: m.pairs(d), view: "dict_items(%s)"} },
	"keys":  func(m *machine, d *Dict, a args) Value { return &List{Items: m.clone(d.keys), view: "dict_keys(%s)"} },
	"pop": func(m *machine, d *Dict, a args) Value {
		p := m.take("pop", a, "key", "default")
		v, ok := m.lookup(d, p[0])
		if !ok && len(a.pos) < 2 {
			m.fail("pop: the dict has no key %s", m.describe(p[0]))
		}
		if !ok {
			return p[1]
		}
		m.spend(96 * len(d.keys))
		d.remove(m.key(p[0]))
		return v
	},
	"setdefault": func(m *machine, d *Dict, a args) Value {
		p := m.take("setdefault", a, "key", "default")
		if v, ok := m.lookup(d, p[0]); ok {
			return v
		}
		m.put(d, p[0], p[1])
		return p[1]
	},
	"update": func(m *machine, d *Dict, a args) Value {
		from := m.newDict("update", a)
		m.update(d, from)
		return nil
	},
	"values": func(m *machine, d *Dict, a args) Value {
		return &List{Items: m.clone(d.values), view: "dict_values(%s)"}
	},
}

var listMethods = map[string]func(m *machine, l *List, a args) Value{
	"append": func(m *machine, l *List, a args) Value {
		m.spend(32)
		l.Items = append(slices.Clip(l.Items), m.operand("append", a)) // whoever loops over it keeps what it had
		return nil
	},
	"clear": func(m *machine, l *List, a args) Value { l.Items = nil; return nil },
	"copy":  func(m *machine, l *List, a args) Value { return &List{Items: m.clone(l.Items)} },
	"count": func(m *machine, l *List, a args) Value {
		n := int64(0)
		for _, x := range l.Items {
			if m.equal(x, m.operand("count", a)) {
				n++
			}
		}
		return n
	},
	"extend": func(m *machine, l *List, a args) Value {
		more := m.iterate(m.operand("extend", a))
		m.spend(16 * (len(l.Items) + len(more)))
		l.Items = slices.Concat(l.Items, more)
		return nil
	},
	"index": func(m *machine, l *List, a args) Value {
		for i, x := range l.Items {
			if m.equal(x, m.operand("index", a)) {
				return int64(i)
			}
		}
		m.fail("index: the list has no such item")
		return nil
	},
	"insert": func(m *machine, l *List, a args) Value {
		p := m.take("insert", a, "index", "object")
		n := int64(len(l.Items))
		i := m.int("insert", p[0], 0)
		if i < 0 {
			i = max(0, i+n)
		}
		l.Items = slices.Insert(m.clone(l.Items), int(min(i, n)), p[1])
		return nil
	},
	"pop": func(m *machine, l *List, a args) Value {
		i, ok := index(m.int("pop", m.take("pop", a, "index")[0], -1), len(l.Items))
		if !ok {
			m.fail("pop: the list has %d items", len(l.Items))
		}
		v := l.Items[i]
		l.Items = slices.Delete(m.clone(l.Items), i, i+1)
		return v
	},
	"reverse": func(m *machine, l *List, a args) Value {
		l.Items = m.clone(l.Items)
		slices.Reverse(l.Items)
		return nil
	},
	"sort": func(m *machine, l *List, a args) Value {
		p := m.take("sort", a, "key", "reverse")
		l.Items = m.clone(l.Items)
		m.sort(l.Items, m.truth(p[1]), func(v Value) Value { return v })
		return nil
	},
}

type stringMethod = func(m *machine, s string, a args) Value

var stringMethods map[string]stringMethod

func init() {
	stringMethods = map[string]stringMethod{
		"capitalize": func(m *machine, s string, a args) Value {
			m.spend(m.mul(3, len(s)))
			_, n := utf8.DecodeRuneInString(s)
			return strings.ToUpper(s[:n]) + strings.ToLower(s[n:])
		},
		"casefold": mapped(strings.ToLower), "lower": mapped(strings.ToLower), "upper": mapped(strings.ToUpper),
		"title": mapped(pythonTitle), "swapcase": mapped(swapCase),
		"center": justify(true, true), "ljust": justify(false, true), "rjust": justify(true, false),
		"count": func(m *machine, s string, a args) Value {
			m.scan(len(s))
			return int64(strings.Count(s, m.want("count", a)))
		},
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"find": found(strings.Index, false), "rfind": found(strings.LastIndex, false),
		"index": found(strings.Index, true), "rindex": found(strings.LastIndex, true),
		"format":    func(m *machine, s string, a args) Value { return (&formatter{m: m, args: a}).format(s) },
		"isalnum":   all(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isalpha":   all(unicode.IsLetter),
		"isdecimal": all(unicode.IsDigit), "isdigit": all(unicode.IsDigit), "isnumeric": all(unicode.IsNumber),
		"isspace": all(isSpace),
		"isascii": func(m *machine, s string, a args) Value {
			m.scan(len(s))
			return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
		},
		"islower": func(m *machine, s string, a args) Value { return m.cased(s, strings.ToLower, strings.ToUpper) },
		"isupper": func(m *machine, s string, a args) Value { return m.cased(s, strings.ToUpper, strings.ToLower) },
		"join":    stringJoin,
		"strip":   strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"partition": partition(strings.Index, false), "rpartition": partition(strings.LastIndex, true),
		"removeprefix": func(m *machine, s string, a args) Value { return strings.TrimPrefix(s, m.want("removeprefix", a)) },
		"removesuffix": func(m *machine, s string, a args) Value { return strings.TrimSuffix(s, m.want("removesuffix", a)) },
		"replace":      stringReplace,
		"split":        split(false), "rsplit": split(true), "splitlines": splitLines,
		"zfill": func(m *machine, s string, a args) Value {
			n := m.int("zfill", m.operand("zfill", a), 0) - int64(m.length(s))
			sign := ""
			if s != "" && (s[0] == '-' || s[0] == '+') {
				sign, s = s[:1], s[1:]
			}
			return sign + m.repeat("0", n) + s
		},
	}
}
