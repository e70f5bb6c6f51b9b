package jinja

import (
	"strings"
)

type testFunc func(m *machine, v Value, a args) bool

var tests map[string]testFunc

func init() {
	tests = map[string]testFunc{
		"boolean":  func(m *machine, v Value, a args) bool { _, ok := v.(bool); return ok },
		"callable": isCallable,
		"defined":  func(m *machine, v Value, a args) bool { _, no := v.(undefined); return !no },
		"divisibleby": func(m *machine, v Value, a args) bool {
			return m.equal(m.arith("%", v, m.operand("divisibleby", a)), int64(0))
		},
		"escaped":   func(m *machine, v Value, a args) bool { _, ok := v.(markup); return ok },
		"even":      func(m *machine, v Value, a args) bool { return m.equal(m.arith("%", v, int64(2)), int64(0)) },
		"odd":       func(m *machine, v Value, a args) bool { return m.equal(m.arith("%", v, int64(2)), int64(1)) },
		"false":     func(m *machine, v Value, a args) bool { return v == false },
		"true":      func(m *machine, v Value, a args) bool { return v == true },
		"filter":    func(m *machine, v Value, a args) bool { return filters[m.str(v)] != nil },
		"test":      func(m *machine, v Value, a args) bool { return tests[m.str(v)] != nil },
		"float":     func(m *machine, v Value, a args) bool { _, ok := v.(float64); return ok },
		"integer":   func(m *machine, v Value, a args) bool { return typeName(v) == "int" },
		"number":    func(m *machine, v Value, a args) bool { _, ok := float(v); return ok || typeName(v) == "int" },
		"iterable":  isIterable,
		"sequence":  isSequence,
		"lower":     func(m *machine, v Value, a args) bool { return m.cased(v, strings.ToLower, strings.ToUpper) },
		"upper":     func(m *machine, v Value, a args) bool { return m.cased(v, strings.ToUpper, strings.ToLower) },
		"mapping":   func(m *machine, v Value, a args) bool { _, ok := v.(*Dict); return ok },
		"none":      func(m *machine, v Value, a args) bool { return v == nil },
		"sameas":    isSame,
		"string":    func(m *machine, v Value, a args) bool { _, ok := bare(v).(string); return ok },
		"undefined": func(m *machine, v Value, a args) bool { _, ok := v.(undefined); return ok },
	}
	for op, names := range map[string]string{"==": "== eq equalto", "!=": "!= ne", "<": "< lt lessthan", ">": "> gt greaterthan", "<=": "<= le", ">=": ">= ge", "in": "in"} {
		for _, name := range strings.Fields(names) {
			tests[name] = func(m *machine, v Value, a args) bool { return m.compare(op, v, m.operand(name, a)) }
		}
	}
}

// operand is the one argument that a test compares with.
func (m *machine) operand(test string, a args) Value {
	if len(a.pos) != 1 || len(a.kw) > 0 {
		m.fail("test %s takes one argument, found %d", test, len(a.pos)+len(a.kw))
	}
	return a.pos[0]
}

// isCallable holds, as in Jinja2, also for what is undefined.
func isCallable(m *machine, v Value, a args) bool {
	switch v := v.(type) {
	case function, undefined:
		return true
	case object:
		return v["\x00call"] != nil
	case *loop:
		return v.recurse != nil
	}
	return false
}

// isIterable holds for what has items or runes; as in Python, also for what is undefined.
func isIterable(m *machine, v Value, a args) bool {
	switch v.(type) {
	case string, markup, *List, *Dict, undefined:
		return true
	}
	return false
}

// isSequence holds for what has a length and items by their place or key.
func isSequence(m *machine, v Value, a args) bool {
	l, ok := v.(*List)
	return isIterable(m, v, a) && (!ok || l.subscripted())
}

func isSame(m *machine, v Value, a args) bool {
	switch o := m.operand("sameas", a); x := v.(type) {
	case *List, *Dict, nil, bool, *loop:
		return v == o
	case int64, bigInt, float64, string, markup:
		return typeName(v) == typeName(o) && m.equal(x, o)
	}
	return false
}

// cased is Python's islower or isupper: it has letters with case, and all are such.
func (m *machine) cased(v Value, to, from func(string) string) bool {
	s := m.str(v)
	m.spend(m.mul(8, len(s)))
	return to(s) == s && from(s) != s
}
