package jinja

import (
	"fmt"
	"unicode/utf8"
)

func (m *machine) eval(x expr, s *scope) Value {
	m.enter()
	v := x.eval(m, s)
	m.leave()
	return v
}

func (x *literal) eval(*machine, *scope) Value { return x.v }

func (x *name) eval(_ *machine, s *scope) Value {
	if v, ok := s.get(x.name); ok {
		return v
	}
	return undefined{"'" + x.name + "' is undefined"}
}

func (x *list) eval(m *machine, s *scope) Value {
	m.spend(16*len(x.items) + 48)
	l := &List{Items: make([]Value, len(x.items)), tuple: x.tuple}
	for i, it := range x.items {
		l.Items[i] = m.eval(it, s)
	}
	return l
}

func (x *dict) eval(m *machine, s *scope) Value {
	m.spend(64)
	d := &Dict{}
	for i, k := range x.keys {
		m.put(d, m.eval(k, s), m.eval(x.values[i], s))
	}
	return d
}

func (x *not) eval(m *machine, s *scope) Value { return !m.truth(m.eval(x.x, s)) }

func (x *sign) eval(m *machine, s *scope) Value {
	switch v := number(m.eval(x.x, s)).(type) {
	case int64:
		if x.neg {
			return -v
		}
		return v
	case float64:
		if x.neg {
			return -v
		}
		return v
	default:
		m.fail("%s has no sign", m.describe(v))
		return nil
	}
}

func (x *logic) eval(m *machine, s *scope) Value {
	l := m.eval(x.l, s)
	if m.truth(l) == x.or {
		return l
	}
	return m.eval(x.r, s)
}

func (x *compare) eval(m *machine, s *scope) Value {
	l := m.eval(x.l, s)
	for i, op := range x.ops {
		r := m.eval(x.rest[i], s)
		if !m.compare(op, l, r) {
			return false
		}
		l = r
	}
	return true
}

func (x *cond) eval(m *machine, s *scope) Value {
	if m.truth(m.eval(x.test, s)) {
		return m.eval(x.then, s)
	}
	if x.other == nil {
		return undefined{"the inline if has no else"}
	}
	return m.eval(x.other, s)
}

func (x *binary) eval(m *machine, s *scope) Value {
	l := m.eval(x.l, s)
	return m.arith(x.op, l, m.eval(x.r, s))
}

// attr is x.name: of a dict, its methods go before its keys.
func (x *attr) eval(m *machine, s *scope) Value {
	v := m.eval(x.x, s)
	if a, ok := m.attr(v, x.name); ok {
		return a
	}
	if d, ok := v.(*Dict); ok {
		if e, ok := d.Get(x.name); ok {
			return e
		}
	}
	return m.missing(v, x.name)
}

func (m *machine) missing(v Value, name string) Value {
	if u, ok := v.(undefined); ok {
		m.fail("%s", u.what)
	}
	return undefined{fmt.Sprintf("%s has no attribute '%s'", typeName(v), name)}
}

func (m *machine) attr(v Value, name string) (Value, bool) {
	switch v := v.(type) {
	case namespace:
		return v.Get(name)
	case *loop:
		return v.attr(name)
	case object:
		a, ok := v[name]
		return a, ok
	case function:
		if name == "name" {
			return v.name, true
		}
	case string, markup, *Dict, *List:
		if f := method(v, name); f != nil {
			m.spend(64)
			return function{name, f}, true
		}
	}
	return nil, false
}

// item is x[key]: of a dict, its keys go before its methods.
func (x *item) eval(m *machine, s *scope) Value {
	v, k := m.eval(x.x, s), m.eval(x.key, s)
	return m.item(v, k)
}

func (m *machine) item(v, k Value) Value {
	switch c := v.(type) {
	case *Dict:
		if e, ok := c.get(m.hash(k)); ok {
			return e
		}
	case *List:
		if i, ok := index(k, len(c.Items)); ok && c.subscripted() {
			return c.Items[i]
		}
	case string:
		if n, ok := number(k).(int64); ok {
			m.scan(len(c))
			if i, ok := index(n, utf8.RuneCountInString(c)); ok {
				return string(runesFrom(c, i, i+1))
			}
		}
	case markup:
		if _, ok := number(k).(int64); ok {
			return asMarkup(m.item(string(c), k))
		}
	}
	if name, ok := bare(k).(string); ok {
		if a, ok := m.attr(v, name); ok {
			return a
		}
		return m.missing(v, name)
	}
	return m.missing(v, m.str(k))
}

func index(k Value, n int) (int, bool) {
	i, ok := number(k).(int64)
	if ok && i < 0 {
		i += int64(n)
	}
	return int(i), ok && 0 <= i && i < int64(n)
}

// runesFrom is s[lo:hi] in runes, which must lie inside.
func runesFrom(s string, lo, hi int) string {
	begin, end, i := len(s), len(s), 0
	for off := range s {
		if i == lo {
			begin = off
		}
		if i == hi {
			end = off
			break
		}
		i++
	}
	return s[begin:max(begin, end)]
}

func (x *slice) eval(m *machine, s *scope) Value {
	v := m.eval(x.x, s)
	text, marked := v.(markup)
	if marked {
		v = string(text)
	}
	cut := x.cut(m, s, v)
	if marked {
		return asMarkup(cut)
	}
	return cut
}

// cut slices a string or a list.
func (x *slice) cut(m *machine, s *scope, v Value) Value {
	var part [3]*int64
	for i, e := range []expr{x.lo, x.hi, x.step} {
		if e == nil {
			continue
		}
		switch n := number(m.eval(e, s)).(type) {
		case nil:
		case int64:
			part[i] = &n
		default:
			m.fail("a slice is cut by %s, wanted an integer", m.describe(n))
		}
	}
	switch v := v.(type) {
	case string:
		m.spend(len(v))
		if part[2] == nil || *part[2] == 1 {
			lo, hi, _ := m.bounds(part, utf8.RuneCountInString(v))
			return runesFrom(v, lo, max(lo, hi))
		}
		m.spend(4 * len(v))
		runes := []rune(v)
		out := []rune{}
		for _, i := range m.sliced(part, len(runes)) {
			out = append(out, runes[i])
		}
		return string(out)
	case *List:
		if !v.subscripted() {
			m.fail("%s can't be sliced", typeName(v))
		}
		ix := m.sliced(part, len(v.Items))
		out := &List{Items: make([]Value, len(ix)), tuple: v.tuple}
		for i, at := range ix {
			out.Items[i] = v.Items[at]
		}
		return out
	}
	if u, ok := v.(undefined); ok {
		m.fail("%s", u.what)
	}
	return undefined{typeName(v) + " can't be sliced"}
}

// bounds are Python's: lo, hi clipped to the sequence.
func (m *machine) bounds(part [3]*int64, n int) (lo, hi, step int) {
	step = 1
	if part[2] != nil {
		if *part[2] == 0 {
			m.fail("a slice's step is zero")
		}
		step = int(max(min(*part[2], int64(n)+1), -int64(n)-1))
	}
	least, most := 0, n
	lo, hi = 0, n
	if step < 0 {
		least, most = -1, n-1
		lo, hi = n-1, -1
	}
	clip := func(p *int64, def int) int {
		if p == nil {
			return def
		}
		i := *p
		if i < 0 {
			i = max(i, -int64(n)-1) + int64(n)
		}
		return int(max(int64(least), min(i, int64(most))))
	}
	return clip(part[0], lo), clip(part[1], hi), step
}

func (m *machine) sliced(part [3]*int64, n int) []int {
	m.spend(24 * n)
	lo, hi, step := m.bounds(part, n)
	var ix []int
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		ix = append(ix, i)
	}
	return ix
}

func (x *call) eval(m *machine, s *scope) Value {
	f := m.eval(x.f, s)
	return m.call(f, m.args(&x.args, s))
}

func (m *machine) call(f Value, a args) Value {
	m.enter()
	defer m.leave()
	switch f := f.(type) {
	case function:
		return f.call(m, a)
	case *loop:
		if f.recurse == nil || len(a.pos) != 1 {
			m.fail("loop is called, but it is not recursive or not with one argument")
		}
		return f.recurse(m, a.pos[0])
	case object:
		if g, ok := f["\x00call"].(function); ok {
			return g.call(m, a)
		}
	case undefined:
		m.fail("%s", f.what)
	}
	m.fail("%s is called, but it is no function", m.describe(f))
	return nil
}

func (m *machine) args(x *arguments, s *scope) (a args) {
	m.spend(16 * (len(x.pos) + 2*len(x.kw)))
	for _, e := range x.pos {
		a.pos = append(a.pos, m.eval(e, s))
	}
	if x.star != nil {
		a.pos = append(a.pos, m.iterate(m.eval(x.star, s))...)
	}
	for i, e := range x.kw {
		a.names, a.kw = append(a.names, x.names[i]), append(a.kw, m.eval(e, s))
	}
	if x.dblstr != nil {
		d, ok := m.eval(x.dblstr, s).(*Dict)
		if !ok {
			m.fail("** wants a dict")
		}
		for i, k := range d.keys {
			n, ok := k.(string)
			if !ok {
				m.fail("** wants keys that are strings")
			}
			m.spend(32)
			a.names, a.kw = append(a.names, n), append(a.kw, d.values[i])
		}
	}
	return a
}

func (x *filter) eval(m *machine, s *scope) Value {
	var v Value
	if x.x != nil {
		v = m.eval(x.x, s)
	} else {
		v, _ = s.get(body)
	}
	return m.filter(x.name, v, m.args(&x.args, s))
}

func (m *machine) filter(name string, v Value, a args) Value {
	f := filters[name]
	if f == nil {
		m.fail("no filter is named %q", name)
	}
	return f(m, v, a)
}

func (x *test) eval(m *machine, s *scope) Value {
	v := m.eval(x.x, s)
	return m.test(x.name, v, m.args(&x.args, s)) != x.not
}

func (m *machine) test(name string, v Value, a args) bool {
	f := tests[name]
	if f == nil {
		m.fail("no test is named %q", name)
	}
	return f(m, v, a)
}
