package jinja

import (
	"math"
	"strings"
)

func (m *machine) arith(op string, l, r Value) Value {
	if op == "~" {
		b := &buffer{m: m}
		m.print(b, l)
		m.print(b, r)
		return b.b.String()
	}
	if v, ok := markupArith(m, op, l, r); ok {
		return v
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
			return (&formatter{m: m}).percent(x, r)
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
			return m.floats(op, float64(x), float64(y))
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
		if x == 0 && y < 0 {
			m.fail("0 ** %v: division by zero", y)
		}
		if x < 0 && y != math.Trunc(y) {
			m.fail("%v ** %v is no real number", x, y)
		}
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
	if r == 0 { // its sign is the divisor's
		r = math.Copysign(0, y)
	}
	return r
}
