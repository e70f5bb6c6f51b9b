package gguf

import (
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Metadata is the ordered key/value part of a file. A value is a Go uint8 … float64,
// bool or string, or a slice of one of these; an array of arrays is a []any of slices.
type Metadata struct {
	keys   []string
	values map[string]any // a *texts stands for a []string
}

// made is a stored value as users see it.
func made(stored any) any {
	if t, ok := stored.(*texts); ok {
		return t.strings()
	}
	return stored
}

// NewMetadata makes an empty one.
func NewMetadata() *Metadata { return &Metadata{values: map[string]any{}} }

// Keys lists the keys in the file's order.
func (m *Metadata) Keys() []string { return slices.Clone(m.keys) }

// Get is the value as it is stored. A slice belongs to the Metadata: read only.
func (m *Metadata) Get(key string) (any, bool) {
	v, ok := m.values[key]
	return made(v), ok
}

// Elements tells of an array without making its strings: an array of strings stays in the form that it has in the file until somebody asks for it, which saves time where
// it is large.
type Elements struct {
	Len  int       // number of elements
	Type ValueType // their type

	stored any
}

// Elements is the elements of an array; ok is false if the key has none.
func (m *Metadata) Elements(key string) (e Elements, ok bool) {
	stored := m.values[key]
	if t, lazy := stored.(*texts); lazy {
		return Elements{t.n, String, stored}, true
	}
	t, elem, _ := valueType(stored)
	if t != Array {
		return Elements{}, false
	}
	return Elements{reflect.ValueOf(stored).Len(), elem, stored}, true
}

// Strings is the first n elements, or all if there are fewer; nil if they are no strings.
func (e Elements) Strings(n int) []string {
	if t, lazy := e.stored.(*texts); lazy {
		return (&texts{raw: t.raw, n: min(n, t.n)}).strings()
	}
	list, _ := e.stored.([]string)
	return list[:min(n, len(list))]
}

// Set adds a value at the end, or replaces the one of that key where it stands.
func (m *Metadata) Set(key string, v any) error {
	if len(key) == 0 || len(key) > maxName {
		return fmt.Errorf("set metadata: found a key of %d bytes, want 1 to %d", len(key), maxName)
	}
	if _, _, ok := valueType(v); !ok {
		return fmt.Errorf("set metadata %q: found a %T, want a type that GGUF can hold", key, v)
	}
	if _, found := m.values[key]; !found {
		m.keys = append(m.keys, key)
	}
	m.values[key] = v
	return nil
}

// Delete removes a key, if it is there.
func (m *Metadata) Delete(key string) {
	if _, ok := m.values[key]; ok {
		delete(m.values, key)
		m.keys = slices.DeleteFunc(m.keys, func(k string) bool { return k == key })
	}
}

// Clone is a copy with keys of its own; slices are shared.
func (m *Metadata) Clone() *Metadata {
	c := NewMetadata()
	for _, k := range m.keys {
		c.keys = append(c.keys, k)
		c.values[k] = m.values[k]
	}
	return c
}

// Architecture is general.architecture, or "".
func (m *Metadata) Architecture() string {
	s, _ := m.String("general.architecture")
	return s
}

// String is a string value.
func (m *Metadata) String(key string) (string, bool) {
	s, ok := m.values[key].(string)
	return s, ok
}

// Bool is a bool value.
func (m *Metadata) Bool(key string) (bool, bool) {
	b, ok := m.values[key].(bool)
	return b, ok
}

// Int is a value of any integer type that an int64 holds. Converters write false for
// some counts, so false is 0; true is no number.
func (m *Metadata) Int(key string) (int64, bool) { return toInt(m.values[key]) }

// Float is a value of any float or integer type.
func (m *Metadata) Float(key string) (float64, bool) {
	switch v := m.values[key].(type) {
	case float32:
		return float64(v), true
	case float64:
		return v, true
	case uint64:
		return float64(v), true
	case bool:
		return 0, false
	default:
		i, ok := toInt(v)
		return float64(i), ok
	}
}

// Strings is an array of strings.
func (m *Metadata) Strings(key string) ([]string, bool) {
	s, ok := made(m.values[key]).([]string)
	return s, ok
}

// Ints is an array of any integer type whose values all fit an int64.
func (m *Metadata) Ints(key string) ([]int64, bool) {
	switch v := m.values[key].(type) {
	case []uint8:
		return widen(v), true
	case []int8:
		return widen(v), true
	case []uint16:
		return widen(v), true
	case []int16:
		return widen(v), true
	case []uint32:
		return widen(v), true
	case []int32:
		return widen(v), true
	case []int64:
		return slices.Clone(v), true
	case []uint64:
		if len(v) > 0 && slices.Max(v) > math.MaxInt64 {
			return nil, false
		}
		return widen(v), true
	}
	return nil, false
}

// Floats is an array of floats, or of integers seen as such.
func (m *Metadata) Floats(key string) ([]float32, bool) {
	switch v := m.values[key].(type) {
	case []float32:
		return slices.Clone(v), true
	case []float64:
		out := make([]float32, len(v))
		for i, x := range v {
			out[i] = float32(x)
		}
		return out, true
	}
	ints, ok := m.Ints(key)
	if !ok {
		return nil, false
	}
	out := make([]float32, len(ints))
	for i, x := range ints {
		out[i] = float32(x)
	}
	return out, true
}

func toInt(v any) (int64, bool) {
	switch v := v.(type) {
	case uint8:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	case bool:
		return 0, !v
	}
	return 0, false
}

func widen[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64](v []T) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}
