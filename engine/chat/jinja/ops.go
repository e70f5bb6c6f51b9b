package jinja

import (
	"math"
	"strings"
	"unicode/utf8"
)

func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
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
	switch v := v.(type) {
	case undefined:
		return "a value that is not there (" + v.what + ")"
	case string, int64, float64, bool:
		return typeName(v) + " " + m.repr(v)
	}
	return typeName(v)
}

func (m *machine) truth(v Value) bool {
	switch v := v.(type) {
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
	case *loop:
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
	switch c := in.(type) {
	case string:
		s, ok := v.(string)
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
	switch v := v.(type) {
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
	switch v := v.(type) {
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

func (m *machine) arith(op string, l, r Value) Value {
	if op == "~" {
		b := &buffer{m: m}
		m.print(b, l)
		m.print(b, r)
		return b.b.String()
	}
	switch x := l.(type) {
	case string:
		switch y := number(r).(type) {
		case string:
			if op == "+" {
				m.spend(len(x) + len(y))
				return x + y
			}
		case int64:
			if op == "*" {
				return m.repeat(x, y)
			}
		}
		if op == "%" {
			return m.percent(x, r)
		}
	case *List:
		switch y := number(r).(type) {
		case *List:
			if op == "+" && x.tuple == y.tuple {
				m.spend(16 * (len(x.Items) + len(y.Items)))
				return &List{Items: append(append([]Value{}, x.Items...), y.Items...), tuple: x.tuple}
			}
		case int64:
			if op == "*" {
				return m.repeatList(x, y)
			}
		}
	}
	if op == "*" {
		switch r.(type) {
		case string, *List:
			if _, ok := number(l).(int64); ok {
				return m.arith(op, r, l)
			}
		}
	}
	if x, ok := number(l).(int64); ok {
		if y, ok := number(r).(int64); ok {
			return m.integers(op, x, y)
		}
	}
	x, ok := float(l)
	y, also := float(r)
	if !ok || !also {
		m.fail("%s %s %s can't be", m.describe(l), op, m.describe(r))
	}
	return m.floats(op, x, y)
}

func (m *machine) repeat(s string, n int64) string {
	count := int(max(0, min(n, math.MaxInt32)))
	m.spend(m.mul(len(s), count))
	return strings.Repeat(s, count)
}

func (m *machine) repeatList(l *List, n int64) *List {
	count := int(max(0, min(n, math.MaxInt32)))
	m.spend(m.mul(16*len(l.Items), count))
	out := &List{tuple: l.tuple}
	if len(l.Items) > 0 {
		for range count {
			out.Items = append(out.Items, l.Items...)
		}
	}
	return out
}

// integers computes with 64 bits and fails where Python would go on with more.
func (m *machine) integers(op string, x, y int64) Value {
	over := func(ok bool) {
		if !ok {
			m.fail("%d %s %d is beyond 64 bits", x, op, y)
		}
	}
	switch op {
	case "+":
		z := x + y
		over((z > x) == (y > 0))
		return z
	case "-":
		z := x - y
		over((z < x) == (y > 0))
		return z
	case "*":
		z := x * y
		over(x == 0 || z/x == y && !(x == -1 && y == math.MinInt64))
		return z
	case "**":
		if y < 0 {
			return math.Pow(float64(x), float64(y))
		}
		return m.power(x, y)
	case "/":
		return m.floats(op, float64(x), float64(y))
	}
	if y == 0 {
		m.fail("%d %s 0: division by zero", x, op)
	}
	over(!(x == math.MinInt64 && y == -1))
	q, rem := x/y, x%y
	if rem != 0 && (rem < 0) != (y < 0) { // Python rounds down
		q, rem = q-1, rem+y
	}
	if op == "//" {
		return q
	}
	return rem
}

func (m *machine) power(x, y int64) Value {
	if f := math.Pow(float64(x), float64(y)); math.Abs(f) >= 1<<62 {
		m.fail("%d ** %d is beyond 64 bits", x, y)
	}
	z := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			z *= x
		}
		x *= x
	}
	return z
}

func (m *machine) floats(op string, x, y float64) Value {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		return math.Pow(x, y)
	}
	if y == 0 {
		m.fail("division by zero")
	}
	switch op {
	case "/":
		return x / y
	case "//":
		return math.Floor(x / y)
	}
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}
