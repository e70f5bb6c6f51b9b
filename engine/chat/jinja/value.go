package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
)

// Value is what expressions make: nil (none), bool, int64, float64, string, *List,
// *Dict, or one of this package's own: markup, bigInt, undefined, namespace, loop, function, object.
type Value any

// List is a list or a tuple. What a filter makes step by step, a generator in Python,
// is true even when empty; templates rely on it without knowing.
type List struct {
	Items     []Value
	tuple     bool
	generator bool
	view      string // of what is no list in Python: how it shows, with %s for the list; "": a list
}

// subscripted tells whether Python finds items by their place.
func (l *List) subscripted() bool { return !l.generator && !strings.Contains(l.view, "%s") }

// Dict keeps the order its keys came in.
type Dict struct {
	keys   []Value
	values []Value
	at     map[any]int // hash key -> index
}

type (
	bigInt    string                // an integer beyond 64 bits, from JSON: it shows, but is not computed with
	undefined struct{ what string } // why it is: "'x' is undefined"
	namespace struct{ *Dict }
	function  struct {
		name string
		call func(m *machine, a args) Value
	}
	object map[string]Value // attributes only
)

// args are the arguments of a call, in the order given.
type args struct {
	pos    []Value
	names  []string
	kw     []Value
	caller Value // of a call block
}

type (
	unhashable    struct{}
	tupleHash     string // of the hashes of a tuple's items
	undefinedHash struct{}
)

// hash gives the Go value that stands for v as a key; 1, 1.0 and true are one key. It has none of a tuple, which takes a machine's time.
func hash(v Value) any {
	switch v := bare(v).(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
		return v
	case nil, int64, string, bigInt, *loop:
		return v
	case namespace:
		return v.Dict
	case undefined:
		return undefinedHash{}
	}
	return unhashable{}
}

// hash is the hash of any value, paid for: a long key takes long to hash.
func (m *machine) hash(v Value) any {
	m.enter()
	defer m.leave()
	l, ok := v.(*List)
	if !ok || !l.tuple {
		h := hash(v)
		if s, ok := h.(string); ok {
			m.scan(len(s))
		}
		return h
	}
	var b []byte
	for _, x := range l.Items {
		switch h := m.hash(x).(type) {
		case unhashable:
			return h
		case string:
			b = fmt.Appendf(b, "s%d:%s", len(h), h)
		case tupleHash:
			b = fmt.Appendf(b, "t%d:%s", len(h), string(h))
		case *Dict, *loop:
			b = fmt.Appendf(b, "%p,", h)
		default:
			b = fmt.Appendf(b, "%T%v,", h, h)
		}
		m.spend(len(b))
	}
	return tupleHash(b)
}

// Get finds the value of a name.
func (d *Dict) Get(name string) (Value, bool) { return d.get(name) }

// Set puts a value at a name.
func (d *Dict) Set(name string, v Value) { d.set(name, name, v) }

// get finds the value of a key by its hash.
func (d *Dict) get(h any) (Value, bool) {
	i, ok := d.at[h]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

func (d *Dict) set(h any, key, v Value) {
	if i, ok := d.at[h]; ok {
		d.values[i] = v
		return
	}
	if d.at == nil {
		d.at = map[any]int{}
	}
	d.at[h] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, v)
}

// key is the hash of what must be a key.
func (m *machine) key(v Value) any {
	h := m.hash(v)
	if h == (unhashable{}) {
		m.fail("%s can't be a key of a dict", typeName(v))
	}
	return h
}

// lookup finds the value of any key.
func (m *machine) lookup(d *Dict, key Value) (Value, bool) { return d.get(m.key(key)) }

// put sets the value of any key.
func (m *machine) put(d *Dict, key, v Value) {
	m.spend(160)
	d.set(m.key(key), key, v)
}

func (d *Dict) remove(h any) {
	i, ok := d.at[h]
	if !ok {
		return
	}
	d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
	d.values = append(d.values[:i:i], d.values[i+1:]...)
	delete(d.at, h)
	for h, j := range d.at {
		if j > i {
			d.at[h] = j - 1
		}
	}
}

func (d *Dict) copy() *Dict {
	return &Dict{keys: slices.Clone(d.keys), values: slices.Clone(d.values), at: maps.Clone(d.at)}
}

// Plain is a string that FromGo does not guard.
type Plain string

// FromGo turns Go data into a Value: what encoding/json can marshal. JSON keeps the
// order of its keys, a Go map's keys are sorted. Every string, keys too unless they are
// identifiers that a template could ask for, goes through guard if there is one.
func FromGo(v any, guard func(string) string) (Value, error) {
	if guard == nil {
		guard = func(s string) string { return s }
	}
	return fromGo(v, guard, 0)
}

func fromGo(v any, guard func(string) string, depth int) (Value, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("%w: the data is nested too deeply", ErrLimit)
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 { // what json.Unmarshal makes of 5
			return int64(v), nil
		}
		return v, nil
	case *Dict, *List: // ours, guarded by who made them
		return v, nil
	case string:
		return guard(v), nil
	case Plain:
		return string(v), nil
	case int:
		return int64(v), nil
	case []any:
		l := &List{Items: make([]Value, len(v))}
		for i, x := range v {
			var err error
			if l.Items[i], err = fromGo(x, guard, depth+1); err != nil {
				return nil, err
			}
		}
		return l, nil
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		d := &Dict{}
		for _, k := range keys {
			x, err := fromGo(v[k], guard, depth+1)
			if err != nil {
				return nil, err
			}
			d.Set(guardKey(k, guard), x)
		}
		return d, nil
	case json.Number:
		return fromNumber(v)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return fromJSON(dec, guard)
}

func fromNumber(v json.Number) (Value, error) {
	if n, err := v.Int64(); err == nil {
		return n, nil
	}
	if !strings.ContainsAny(string(v), ".eE") {
		return bigInt(v), nil
	}
	return v.Float64()
}

func guardKey(key string, guard func(string) string) string {
	for _, r := range key {
		if r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') {
			return guard(key)
		}
	}
	return key
}

// fromJSON decodes by tokens, as only they tell the order of keys. encoding/json itself
// refuses what is nested too deeply.
func fromJSON(dec *json.Decoder, guard func(string) string) (Value, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		l := &List{}
		for dec.More() {
			x, err := fromJSON(dec, guard)
			if err != nil {
				return nil, err
			}
			l.Items = append(l.Items, x)
		}
		_, err = dec.Token()
		return l, err
	case json.Delim('{'):
		d := &Dict{}
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return nil, err
			}
			x, err := fromJSON(dec, guard)
			if err != nil {
				return nil, err
			}
			d.Set(guardKey(k.(string), guard), x)
		}
		_, err = dec.Token()
		return d, err
	}
	return fromGo(t, guard, 0)
}
