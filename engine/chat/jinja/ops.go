package jinja

import (
	"strings"
	"unicode/utf8"
)

func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "bool"
	case int64, bigInt:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *List:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case namespace:
		return "namespace"
	case undefined:
		return "undefined"
	case function:
		return "function " + v.name
	}
	return "object"
}

// describe names a value in a message.
func (m *machine) describe(v Value) string {
	switch v := bare(v).(type) {
	case undefined:
		return "a value that is not there (" + v.what + ")"
	case string, int64, bigInt, float64, bool:
		return typeName(v) + " " + m.repr(v)
	}
	return typeName(v)
}

func (m *machine) truth(v Value) bool {
	switch v := bare(v).(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return v.generator || len(v.Items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// number makes an int of a bool, as Python has it; all else stays.
func number(v Value) Value {
	switch v {
	case true:
		return int64(1)
	case false:
		return int64(0)
	}
	return v
}

func float(v Value) (float64, bool) {
	switch n := number(v).(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func (m *machine) equal(a, b Value) bool {
	m.enter()
	defer m.leave()
	a, b = bare(a), bare(b)
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		if !ok || len(x) != len(y) {
			return false
		}
		m.scan(len(x))
		return x == y
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case *List:
		y, ok := b.(*List)
		if !ok || len(x.Items) != len(y.Items) || x.tuple != y.tuple {
			return false
		}
		for i := range x.Items {
			if !m.equal(x.Items[i], y.Items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		for i, k := range x.keys {
			v, ok := m.lookup(y, k)
			if !ok || !m.equal(x.values[i], v) {
				return false
			}
		}
		return true
	case namespace:
		y, ok := b.(namespace)
		return ok && x.Dict == y.Dict
	case *loop, bigInt:
		return a == b
	case function, object:
		return false
	}
	x, ok := number(a).(int64)
	y, also := number(b).(int64)
	if ok && also {
		return x == y
	}
	f, ok := float(a)
	g, also := float(b)
	return ok && also && f == g
}

// less orders two numbers, strings or lists; nothing else has an order.
func (m *machine) less(a, b Value) bool {
	m.enter()
	defer m.leave()
	a, b = bare(a), bare(b)
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			m.scan(min(len(x), len(y)))
			return x < y
		}
	case *List:
		y, ok := b.(*List)
		if !ok || x.tuple != y.tuple {
			break
		}
		for i := range min(len(x.Items), len(y.Items)) {
			if !m.equal(x.Items[i], y.Items[i]) {
				return m.less(x.Items[i], y.Items[i])
			}
		}
		return len(x.Items) < len(y.Items)
	}
	x, ok := number(a).(int64)
	y, also := number(b).(int64)
	if ok && also {
		return x < y
	}
	f, ok := float(a)
	g, also := float(b)
	if !ok || !also {
		m.fail("%s and %s have no order", m.describe(a), m.describe(b))
	}
	return f < g
}

func (m *machine) compare(op string, l, r Value) bool {
	switch op {
	case "==":
		return m.equal(l, r)
	case "!=":
		return !m.equal(l, r)
	case "<":
		return m.less(l, r)
	case ">":
		return m.less(r, l)
	case "<=":
		return m.less(l, r) || m.equal(l, r)
	case ">=":
		return m.less(r, l) || m.equal(l, r)
	case "in":
		return m.contains(r, l)
	}
	return !m.contains(r, l)
}

func (m *machine) contains(in, v Value) bool {
	switch c := bare(in).(type) {
	case string:
		s, ok := bare(v).(string)
		if !ok {
			m.fail("%s can't be in a string", m.describe(v))
		}
		m.scan(len(c) + len(s))
		return strings.Contains(c, s)
	case *Dict:
		_, ok := m.lookup(c, v)
		return ok
	}
	for _, x := range m.iterate(in) {
		if m.equal(x, v) {
			return true
		}
	}
	return false
}

// iterate gives what a loop over v visits.
func (m *machine) iterate(v Value) []Value {
	switch v := bare(v).(type) {
	case *List:
		return v.Items
	case *Dict:
		return v.keys
	case undefined:
		return nil
	case string:
		m.spend(m.mul(32, len(v)))
		out := make([]Value, 0, len(v))
		for _, r := range v {
			out = append(out, string(r))
		}
		return out
	}
	m.fail("can't loop over %s", m.describe(v))
	return nil
}

func (m *machine) length(v Value) int {
	switch v := bare(v).(type) {
	case string:
		m.scan(len(v))
		return utf8.RuneCountInString(v)
	case *List:
		return len(v.Items)
	case *Dict:
		return len(v.keys)
	case undefined:
		return 0
	}
	m.fail("%s has no length", m.describe(v))
	return 0
}
