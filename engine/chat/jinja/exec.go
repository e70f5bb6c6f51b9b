package jinja

import (
	"context"
	"time"
)

// Options are what a rendering may see beside its data.
type Options struct {
	Now    func() time.Time // nil: time.Now
	Limits Limits
}

// Render runs the template. An error is an [*Error] and may wrap [ErrLimit], a
// [*Refusal] or ctx's.
func (t *Template) Render(ctx context.Context, data map[string]Value, o Options) (s string, err error) {
	defer guard(&err)
	m := &machine{ctx: ctx, left: o.Limits}
	for _, l := range []struct {
		v   *int
		def int
	}{{&m.left.Steps, defaultSteps}, {&m.left.Bytes, defaultBytes}, {&m.left.Output, defaultOutput}} {
		if *l.v == 0 {
			*l.v = l.def
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	root := &scope{vars: globals(now)}
	for k, v := range data {
		root.vars[k] = v
	}
	m.out = &buffer{m: m, limit: m.left.Output}
	m.run(t.body, root.inner())
	return m.out.b.String(), nil
}

// scopeBytes is about what a scope and its first few names take.
const scopeBytes = 256

type scope struct {
	vars  map[string]Value
	outer *scope
}

func (s *scope) inner() *scope { return &scope{outer: s} }

func (s *scope) get(name string) (Value, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) set(name string, v Value) {
	if s.vars == nil {
		s.vars = map[string]Value{}
	}
	s.vars[name] = v
}

func (m *machine) run(body []stmt, s *scope) signal {
	m.enter()
	defer m.leave()
	for _, st := range body {
		m.step(1)
		if sig := st.exec(m, s); sig != normal {
			return sig
		}
	}
	return normal
}

func (t *text) exec(m *machine, _ *scope) signal {
	m.out.add(t.s)
	return normal
}

func (o *output) exec(m *machine, s *scope) signal {
	m.line = o.line
	m.print(m.out, m.eval(o.x, s))
	return normal
}

func (b *block) exec(m *machine, s *scope) signal { return m.run(b.body, s.inner()) }

func (j *jump) exec(*machine, *scope) signal { return j.s }

func (i *ifStmt) exec(m *machine, s *scope) signal {
	for _, b := range i.branches {
		m.line = i.line
		if b.test == nil || m.truth(m.eval(b.test, s)) {
			return m.run(b.body, s)
		}
	}
	return normal
}

func (st *setStmt) exec(m *machine, s *scope) signal {
	m.line = st.line
	var v Value
	if st.body == nil {
		v = m.eval(st.x, s)
	} else {
		v = m.capture(func() { m.run(st.body, s.inner()) })
		if st.filter != nil {
			v = m.eval(st.filter, bodyScope(s, v))
		}
	}
	if st.target != nil {
		m.assign(st.target, v, s)
	}
	return normal
}

// assign binds a value to a target.
func (m *machine) assign(t *target, v Value, s *scope) {
	if t.items != nil {
		for i, x := range m.unpack(v, len(t.items)) {
			m.assign(&t.items[i], x, s)
		}
		return
	}
	if t.attr == "" {
		s.set(t.name, v)
		return
	}
	x, _ := s.get(t.name)
	ns, ok := x.(namespace)
	if !ok {
		m.fail("can't set %q of %s, which is no namespace", t.attr, t.name)
	}
	m.spend(64)
	ns.Set(t.attr, v)
}

// unpack splits v over n names.
func (m *machine) unpack(v Value, n int) []Value {
	xs := m.iterate(v)
	if len(xs) != n {
		m.fail("found %d values to unpack, wanted %d", len(xs), n)
	}
	return xs
}

// body is how a filter over a block finds the block's text.
const body = "\x00body"

func bodyScope(s *scope, v Value) *scope {
	return &scope{vars: map[string]Value{body: v}, outer: s}
}

func (f *filterStmt) exec(m *machine, s *scope) signal {
	v := m.capture(func() { m.run(f.body, s.inner()) })
	m.line = f.line
	m.print(m.out, m.eval(f.x, bodyScope(s, v)))
	return normal
}

func (w *withStmt) exec(m *machine, s *scope) signal {
	m.line = w.line
	in := s.inner()
	for i, n := range w.names {
		in.set(n, m.eval(w.xs[i], s))
	}
	return m.run(w.body, in)
}

func (st *macroStmt) exec(m *machine, s *scope) signal {
	m.spend(scopeBytes)
	s.set(st.f.name, m.macro(st.f, s))
	return normal
}

func (c *callStmt) exec(m *machine, s *scope) signal {
	m.line = c.line
	f := m.eval(c.call.f, s)
	a := m.args(&c.call.args, s)
	a.caller = m.macro(c.f, s)
	m.print(m.out, m.call(f, a))
	return normal
}

// macro closes a definition over the scope where it stands.
func (m *machine) macro(def *macroDef, s *scope) function {
	return function{def.name, func(m *machine, a args) Value {
		m.spend(2 * scopeBytes)
		in := s.inner()
		optional := len(def.params) - len(def.defaults)
		bound := make([]bool, len(def.params))
		rest, extra := &List{tuple: true}, &Dict{}
		for i, v := range a.pos {
			if i < len(def.params) {
				in.set(def.params[i], v)
				bound[i] = true
			} else {
				rest.Items = append(rest.Items, v)
			}
		}
	names:
		for i, n := range a.names {
			for j, p := range def.params {
				if p == n {
					if bound[j] {
						m.fail("macro %s takes one value for %q", def.name, n)
					}
					in.set(p, a.kw[i])
					bound[j] = true
					continue names
				}
			}
			extra.Set(n, a.kw[i])
		}
		for i, p := range def.params {
			switch {
			case bound[i]:
			case i >= optional:
				in.set(p, m.eval(def.defaults[i-optional], in))
			default:
				in.set(p, undefined{"parameter '" + p + "' was not provided"})
			}
		}
		in.set("varargs", rest)
		in.set("kwargs", extra)
		in.set("caller", undefined{"'caller' is undefined"})
		if a.caller != nil {
			in.set("caller", a.caller)
		}
		line := m.line
		text := m.capture(func() { m.run(def.body, in) })
		m.line = line
		return text
	}}
}

// loop is the variable of that name.
type loop struct {
	items       []Value
	at, depth   int
	last        Value
	changedOnce bool
	recurse     func(m *machine, v Value) Value // nil unless recursive
}

func (f *forStmt) exec(m *machine, s *scope) signal {
	m.line = f.line
	return f.over(m, s, m.eval(f.in, s), 0)
}

func (f *forStmt) over(m *machine, s *scope, in Value, depth int) signal {
	items := m.iterate(in)
	if f.filter != nil {
		kept := []Value{}
		for _, v := range items {
			m.spend(scopeBytes)
			sc := s.inner()
			m.assign(&f.target, v, sc)
			if m.truth(m.eval(f.filter, sc)) {
				m.spend(16)
				kept = append(kept, v)
			}
		}
		items = kept
	}
	if len(items) == 0 {
		return m.run(f.none, s.inner())
	}
	l := &loop{items: items, depth: depth}
	if f.recursive {
		l.recurse = func(m *machine, v Value) Value {
			return m.capture(func() { f.over(m, s, v, depth+1) })
		}
	}
	for l.at = range items {
		m.spend(scopeBytes)
		m.line = f.line
		sc := s.inner()
		sc.set("loop", l)
		m.assign(&f.target, items[l.at], sc)
		if m.run(f.body, sc) == broke {
			break
		}
	}
	return normal
}

func (l *loop) attr(name string) (Value, bool) {
	at, n := int64(l.at), int64(len(l.items))
	switch name {
	case "index":
		return at + 1, true
	case "index0":
		return at, true
	case "revindex":
		return n - at, true
	case "revindex0":
		return n - at - 1, true
	case "first":
		return at == 0, true
	case "last":
		return at == n-1, true
	case "length":
		return n, true
	case "depth":
		return int64(l.depth) + 1, true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		if at == 0 {
			return undefined{"there is no previous item"}, true
		}
		return l.items[at-1], true
	case "nextitem":
		if at == n-1 {
			return undefined{"there is no next item"}, true
		}
		return l.items[at+1], true
	case "cycle":
		return function{"cycle", func(m *machine, a args) Value {
			if len(a.pos) == 0 {
				m.fail("cycle wants items")
			}
			return a.pos[l.at%len(a.pos)]
		}}, true
	case "changed":
		return function{"changed", func(m *machine, a args) Value {
			v := &List{Items: a.pos}
			changed := !l.changedOnce || !m.equal(l.last, v)
			l.last, l.changedOnce = v, true
			return changed
		}}, true
	}
	return nil, false
}
