package gguf

import "fmt"

// ValueType is the type of a metadata value, by GGUF's number.
type ValueType uint32

// The value types.
const (
	Uint8 ValueType = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	Array
	Uint64
	Int64
	Float64
)

var valueNames = [...]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64"}

// minBytes is the least an element of each type takes in a file: what caps a count
// before memory is taken. A string is at least its length, an array its type and length.
var minBytes = [...]int64{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8}

func (v ValueType) String() string {
	if v.valid() {
		return valueNames[v]
	}
	return fmt.Sprintf("value type %d", uint32(v))
}

func (v ValueType) valid() bool { return int64(v) < int64(len(valueNames)) }

// valueType is the type under which a Go value is written, and for a slice the type
// of its elements; ok is false for what GGUF can't hold.
func valueType(v any) (t, elem ValueType, ok bool) {
	switch v := v.(type) {
	case uint8:
		return Uint8, 0, true
	case int8:
		return Int8, 0, true
	case uint16:
		return Uint16, 0, true
	case int16:
		return Int16, 0, true
	case uint32:
		return Uint32, 0, true
	case int32:
		return Int32, 0, true
	case float32:
		return Float32, 0, true
	case bool:
		return Bool, 0, true
	case string:
		return String, 0, true
	case uint64:
		return Uint64, 0, true
	case int64:
		return Int64, 0, true
	case float64:
		return Float64, 0, true
	case []uint8:
		return Array, Uint8, true
	case []int8:
		return Array, Int8, true
	case []uint16:
		return Array, Uint16, true
	case []int16:
		return Array, Int16, true
	case []uint32:
		return Array, Uint32, true
	case []int32:
		return Array, Int32, true
	case []float32:
		return Array, Float32, true
	case []bool:
		return Array, Bool, true
	case []string:
		return Array, String, true
	case []uint64:
		return Array, Uint64, true
	case []int64:
		return Array, Int64, true
	case []float64:
		return Array, Float64, true
	case []any:
		return Array, Array, arraysOnly(v, 1)
	}
	return 0, 0, false
}

// TypeName is what GGUF calls the type of a metadata value, with its article: "a uint32", "an array of string".
func TypeName(v any) string {
	t, elem, ok := valueType(v)
	switch {
	case !ok:
		return fmt.Sprintf("a %T", v)
	case t == Array:
		return "an array of " + elem.String()
	case t == Int8 || t == Int16 || t == Int32 || t == Int64:
		return "an " + t.String()
	}
	return "a " + t.String()
}

// arraysOnly reports whether every element is itself a slice that GGUF can hold, none
// nested deeper than the reader goes.
func arraysOnly(v []any, depth int) bool {
	if depth >= maxDepth {
		return false
	}
	for _, e := range v {
		if nested, ok := e.([]any); ok {
			if !arraysOnly(nested, depth+1) {
				return false
			}
			continue
		}
		if t, _, ok := valueType(e); !ok || t != Array {
			return false
		}
	}
	return true
}
