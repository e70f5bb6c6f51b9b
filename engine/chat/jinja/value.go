package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"sort"
)

// Value is what expressions make: nil (none), bool, int64, float64, string, *List,
// *Dict, or one of this package's own: undefined, namespace, loop, function, object.
type Value any

// List is a list or a tuple. What a filter makes step by step, a generator in Python,
// is true even when empty; templates rely on it without knowing.
type List struct {
	Items     []Value
	tuple     bool
	generator bool
}

// Dict keeps the order its keys came in.
type Dict struct {
	keys   []Value
	values []Value
	at     map[any]int // hash key -> index
}

type (
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

type unhashable struct{}

// hash gives the Go value that stands for v as a key; 1, 1.0 and true are one key.
// Python's tuples can be keys too, but no chat template wants them.
func hash(v Value) any {
	switch v := v.(type) {
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
	case nil, int64, string:
		return v
	}
	return unhashable{}
}

// Get finds the value of a key.
func (d *Dict) Get(key Value) (Value, bool) {
	i, ok := d.at[hash(key)]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// Set puts a value at a key; it reports false for what can't be a key.
func (d *Dict) Set(key, v Value) bool {
	h := hash(key)
	if h == (unhashable{}) {
		return false
	}
	if i, ok := d.at[h]; ok {
		d.values[i] = v
		return true
	}
	if d.at == nil {
		d.at = map[any]int{}
	}
	d.at[h] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, v)
	return true
}

// lookup is Get, paid for: a long key takes long to hash.
func (m *machine) lookup(d *Dict, key Value) (Value, bool) {
	if s, ok := key.(string); ok {
		m.scan(len(s))
	}
	return d.Get(key)
}

func (d *Dict) remove(key Value) {
	i, ok := d.at[hash(key)]
	if !ok {
		return
	}
	d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
	d.values = append(d.values[:i:i], d.values[i+1:]...)
	d.at = map[any]int{}
	for i, k := range d.keys {
		d.at[hash(k)] = i
	}
}

func (d *Dict) copy() *Dict {
	n := &Dict{}
	for i, k := range d.keys {
		n.Set(k, d.values[i])
	}
	return n
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
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return fromJSON(dec, guard)
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
