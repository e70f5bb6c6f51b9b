package jinja

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func generator(items []Value) *List { return &List{Items: items, generator: true} }

func filterBatch(m *machine, v Value, a args) Value {
	p := m.take("batch", a, "linecount", "fill_with")
	n := int(min(m.int("batch", p[0], 0), maxRange))
	if n <= 0 {
		m.fail("batch wants a positive count")
	}
	xs := m.iterate(v)
	m.spend(64 * len(xs))
	var out []Value
	for part := range slices.Chunk(xs, n) {
		row := slices.Clone(part)
		if p[1] != nil {
			m.spend(16 * n)
			for len(row) < n {
				row = append(row, p[1])
			}
		}
		out = append(out, &List{Items: row})
	}
	return generator(out)
}

func filterSlice(m *machine, v Value, a args) Value {
	p := m.take("slice", a, "slices", "fill_with")
	n := int(min(m.int("slice", p[0], 0), maxRange))
	if n <= 0 {
		m.fail("slice wants a positive count")
	}
	xs := m.iterate(v)
	m.spend(64*n + 16*len(xs))
	each, extra, at := len(xs)/n, len(xs)%n, 0
	var out []Value
	for i := range n {
		end := at + each
		if i < extra {
			end++
		}
		row := slices.Clone(xs[at:end])
		if p[1] != nil && i >= extra {
			row = append(row, p[1])
		}
		at = end
		out = append(out, &List{Items: row})
	}
	return generator(out)
}

// folded is what case-insensitive orders go by.
func (m *machine) folded(v Value, sensitive bool) Value {
	if s, ok := bare(v).(string); ok && !sensitive {
		m.spend(len(s))
		return strings.ToLower(s)
	}
	return v
}

func filterDictsort(m *machine, v Value, a args) Value {
	p := m.take("dictsort", a, "case_sensitive", "by", "reverse")
	d, ok := v.(*Dict)
	if !ok {
		m.fail("dictsort of %s", m.describe(v))
	}
	at := 0
	if p[1] == "value" {
		at = 1
	}
	items := m.pairs(d)
	m.sort(items, m.truth(p[2]), func(x Value) Value { return m.folded(x.(*List).Items[at], m.truth(p[0])) })
	return &List{Items: items}
}

// pairs are a dict's items.
func (m *machine) pairs(d *Dict) []Value {
	m.spend(128 * len(d.keys))
	out := make([]Value, len(d.keys))
	for i, k := range d.keys {
		out[i] = &List{Items: []Value{k, d.values[i]}, tuple: true}
	}
	return out
}

func (m *machine) sort(xs []Value, reverse bool, key func(Value) Value) {
	m.spend(32 * len(xs))
	type keyed struct{ k, v Value }
	ks := make([]keyed, len(xs))
	for i, x := range xs {
		ks[i] = keyed{key(x), x}
	}
	slices.SortStableFunc(ks, func(a, b keyed) int {
		if reverse {
			a, b = b, a
		}
		return m.order(a.k, b.k)
	})
	for i, k := range ks {
		xs[i] = k.v
	}
}

func filterFirst(m *machine, v Value, a args) Value {
	if s, ok := bare(v).(string); ok {
		r, _ := utf8.DecodeRuneInString(s)
		if s != "" {
			return string(r)
		}
	} else if xs := m.iterate(v); len(xs) > 0 {
		return xs[0]
	}
	return undefined{"there is no first item"}
}

func filterLast(m *machine, v Value, a args) Value {
	if s, ok := v.(markup); ok && s != "" {
		return asMarkup(filterLast(m, string(s), a))
	}
	if s, ok := bare(v).(string); ok {
		r, _ := utf8.DecodeLastRuneInString(s)
		if s != "" {
			return string(r)
		}
	} else if xs := m.iterate(v); len(xs) > 0 {
		return xs[len(xs)-1]
	}
	return undefined{"there is no last item"}
}

// getter reads an attribute such as "function.name" or 0 of each item.
func (m *machine) getter(attribute Value) func(Value) Value {
	if attribute == nil {
		return func(v Value) Value { return v }
	}
	var path []Value
	if n, ok := number(attribute).(int64); ok {
		path = []Value{n}
	} else {
		for _, part := range strings.Split(m.str(attribute), ".") {
			if n, err := strconv.ParseInt(part, 10, 64); err == nil {
				path = append(path, n)
			} else {
				path = append(path, part)
			}
		}
	}
	return func(v Value) Value {
		m.step(1)
		for _, k := range path {
			v = m.item(v, k)
		}
		return v
	}
}

func filterGroupby(m *machine, v Value, a args) Value {
	need(m, "groupby", a, "attribute")
	p := m.take("groupby", a, "attribute", "default", "case_sensitive")
	get := m.getter(p[0])
	key := func(x Value) Value {
		k := get(x)
		if _, ok := k.(undefined); ok && p[1] != nil {
			k = p[1]
		}
		return k
	}
	fold := func(x Value) Value { return m.folded(key(x), m.truth(p[2])) }
	xs := m.clone(m.iterate(v))
	m.sort(xs, false, fold)
	m.spend(128 * len(xs))
	var out []Value
	var group *List
	var last Value
	for _, x := range xs {
		if k := fold(x); group == nil || !m.equal(k, last) {
			group, last = &List{}, k
			out = append(out, &List{Items: []Value{key(x), group}, tuple: true})
		}
		group.Items = append(group.Items, x)
	}
	return &List{Items: out}
}

func (m *machine) clone(xs []Value) []Value {
	m.spend(16 * len(xs))
	return slices.Clone(xs)
}

func filterItems(m *machine, v Value, a args) Value {
	switch v := v.(type) {
	case undefined:
		return generator(nil)
	case *Dict:
		return generator(m.pairs(v))
	}
	m.fail("items of %s, wanted a dict", m.describe(v))
	return nil
}

func filterJoin(m *machine, v Value, a args) Value {
	p := m.take("join", a, "d", "attribute")
	sep, get := "", m.getter(p[1])
	if p[0] != nil {
		sep = m.str(p[0])
	}
	b := &buffer{m: m}
	for i, x := range m.iterate(v) {
		m.step(1)
		if i > 0 {
			b.add(sep)
		}
		m.print(b, get(x))
	}
	return b.b.String()
}

func filterList(m *machine, v Value, a args) Value {
	return &List{Items: m.clone(m.iterate(v))}
}

func filterMap(m *machine, v Value, a args) Value {
	var each func(Value) Value
	if len(a.pos) == 0 {
		p := m.take("map", a, "attribute", "default")
		get := m.getter(p[0])
		each = func(x Value) Value {
			x = get(x)
			if _, ok := x.(undefined); ok && slices.Contains(a.names, "default") {
				return p[1]
			}
			return x
		}
	} else {
		name := m.str(a.pos[0])
		a.pos = a.pos[1:]
		each = func(x Value) Value { return m.filter(name, x, a) }
	}
	xs := m.iterateTrue(v)
	m.spend(16 * len(xs))
	out := make([]Value, len(xs))
	for i, x := range xs {
		m.step(1)
		out[i] = each(x)
	}
	return generator(out)
}

// iterateTrue is for the filters that take none, and all that is false, for nothing.
func (m *machine) iterateTrue(v Value) []Value {
	if !m.truth(v) {
		return nil
	}
	return m.iterate(v)
}

func filterSelect(m *machine, v Value, a args) Value     { return m.choose(v, a, false, true) }
func filterReject(m *machine, v Value, a args) Value     { return m.choose(v, a, false, false) }
func filterSelectattr(m *machine, v Value, a args) Value { return m.choose(v, a, true, true) }
func filterRejectattr(m *machine, v Value, a args) Value { return m.choose(v, a, true, false) }

// choose keeps the items, or those with an attribute, for which a test comes out as want.
func (m *machine) choose(v Value, a args, attribute, want bool) Value {
	get := m.getter(nil)
	if attribute {
		if len(a.pos) == 0 {
			m.fail("selectattr wants the name of an attribute")
		}
		get, a.pos = m.getter(a.pos[0]), a.pos[1:]
	}
	test := m.truth
	if len(a.pos) > 0 {
		name := m.str(a.pos[0])
		a.pos = a.pos[1:]
		test = func(x Value) bool { return m.test(name, x, a) }
	}
	var out []Value
	for _, x := range m.iterateTrue(v) {
		m.step(1)
		if test(get(x)) == want {
			m.spend(16)
			out = append(out, x)
		}
	}
	return generator(out)
}

func filterMax(m *machine, v Value, a args) Value { return m.extreme("max", v, a, 1) }
func filterMin(m *machine, v Value, a args) Value { return m.extreme("min", v, a, -1) }

func (m *machine) extreme(f string, v Value, a args, want int) Value {
	p := m.take(f, a, "case_sensitive", "attribute")
	get := m.getter(p[1])
	key := func(x Value) Value { return m.folded(get(x), m.truth(p[0])) }
	xs := m.iterate(v)
	if len(xs) == 0 {
		return undefined{"no aggregated item, sequence was empty"}
	}
	best := xs[0]
	for _, x := range xs[1:] {
		if m.order(key(x), key(best)) == want {
			best = x
		}
	}
	return best
}

func filterReverse(m *machine, v Value, a args) Value {
	if s, ok := bare(v).(string); ok {
		m.spend(m.mul(5, len(s)))
		runes := []rune(s)
		slices.Reverse(runes)
		return string(runes)
	}
	xs := m.clone(m.iterate(v))
	slices.Reverse(xs)
	return generator(xs)
}

func filterSort(m *machine, v Value, a args) Value {
	p := m.take("sort", a, "reverse", "case_sensitive", "attribute")
	xs := m.clone(m.iterate(v))
	var gets []func(Value) Value
	if s, ok := bare(p[2]).(string); ok {
		for _, part := range strings.Split(s, ",") {
			gets = append(gets, m.getter(part))
		}
	} else {
		gets = append(gets, m.getter(p[2]))
	}
	// The key is a list even of one attribute: lists compare items for equality first, so items without an order may be equal.
	m.spend(m.mul(64*len(gets), len(xs)))
	m.sort(xs, m.truth(p[0]), func(x Value) Value {
		key := &List{}
		for _, get := range gets {
			key.Items = append(key.Items, m.folded(get(x), m.truth(p[1])))
		}
		return key
	})
	return &List{Items: xs}
}

func filterSum(m *machine, v Value, a args) Value {
	p := m.take("sum", a, "attribute", "start")
	get := m.getter(p[0])
	sum := p[1]
	if sum == nil {
		sum = int64(0)
	}
	for _, x := range m.iterate(v) {
		m.step(1)
		sum = m.arith("+", sum, get(x))
	}
	return sum
}

func filterUnique(m *machine, v Value, a args) Value {
	p := m.take("unique", a, "case_sensitive", "attribute")
	get, seen := m.getter(p[1]), &Dict{}
	var out []Value
	for _, x := range m.iterate(v) {
		k := m.folded(get(x), m.truth(p[0]))
		if _, ok := m.lookup(seen, k); !ok {
			m.put(seen, k, nil)
			out = append(out, x)
		}
	}
	return generator(out)
}
