package arch

import (
	"fmt"
	"math"

	"leat/gguf"
)

// keys reads the hyperparameters of one architecture. It remembers the first fault, and which
// keys were read: what is left of them, [keys.audit] judges.
type keys struct {
	md   *gguf.Metadata
	arch string
	read map[string]bool // by the key's whole name
	err  error
}

func newKeys(md *gguf.Metadata, arch string) *keys {
	return &keys{md: md, arch: arch, read: map[string]bool{}}
}

const maxDim = 1 << 24 // no hyperparameter of a real model comes near; keeps products inside int64

// value is what the file has under a key, and the key's whole name.
func (k *keys) value(name string) (key string, v any, there bool) {
	key = k.arch + "." + name
	k.read[key] = true
	v, there = k.md.Get(key)
	return key, v, there
}

// int reads an integer of any width; a fallback below 0 says that the key must be there.
func (k *keys) int(name string, fallback int) int {
	key, v, there := k.value(name)
	if !there {
		if fallback < 0 && k.err == nil {
			k.err = fmt.Errorf("read hyperparameters: key %q is missing", key)
		}
		return fallback
	}
	n, ok := oneInt(k.md, key)
	switch {
	case !isInteger(v):
		k.wrongType(key, v, "an integer")
	case !ok:
		k.fail("key %q: found values that are not one integer for all layers", key)
	case n < 0 || n > maxDim:
		k.fail("key %q: found %d, wanted 0 to %d", key, n, maxDim)
	default:
		return int(n)
	}
	return 0
}

// oneInt is an integer, or the one that all layers have where a file has one for each.
func oneInt(md *gguf.Metadata, key string) (int64, bool) {
	if n, ok := md.Int(key); ok {
		return n, true
	}
	all, ok := md.Ints(key)
	if !ok || len(all) == 0 {
		return 0, false
	}
	for _, n := range all {
		ok = ok && n == all[0]
	}
	return all[0], ok
}

// float reads a finite float32 or float64.
func (k *keys) float(name string, fallback float64) float64 {
	key, v, there := k.value(name)
	if !there {
		return fallback
	}
	if !isFloat(v) {
		k.wrongType(key, v, "a float")
		return fallback
	}
	x, _ := k.md.Float(key)
	if !finite(x) {
		k.fail("key %q: found %g, wanted a finite number", key, x)
		return fallback
	}
	return x
}

// positive reads a float above 0.
func (k *keys) positive(name string, fallback float64) float64 {
	x := k.float(name, fallback)
	if float32(x) <= 0 {
		k.fail("key %q: found %g, wanted a positive number", k.arch+"."+name, x)
		return fallback
	}
	return x
}

// atLeastZero reads a float that is not negative.
func (k *keys) atLeastZero(name string, fallback float64) float64 {
	x := k.float(name, fallback)
	if x < 0 {
		k.fail("key %q: found %g, wanted 0 or more", k.arch+"."+name, x)
		return fallback
	}
	return x
}

func (k *keys) bool(name string, fallback bool) bool {
	key, v, there := k.value(name)
	if !there {
		return fallback
	}
	b, ok := v.(bool)
	if !ok {
		k.wrongType(key, v, "a bool")
		return fallback
	}
	return b
}

func (k *keys) text(name, fallback string) string {
	key, v, there := k.value(name)
	if !there {
		return fallback
	}
	s, ok := v.(string)
	if !ok {
		k.wrongType(key, v, "a string")
		return fallback
	}
	return s
}

func (k *keys) wrongType(key string, v any, wanted string) {
	k.fail("key %q: found %s, wanted %s", key, gguf.TypeName(v), wanted)
}

func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf("read hyperparameters: "+format, args...)
	}
}

// finite reports whether x is a number that a float32 holds.
func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat32 }

// What a value is made of, alone or in an array of one for each layer.

func isInteger(v any) bool {
	switch v.(type) {
	case uint8, int8, uint16, int16, uint32, int32, uint64, int64, []uint8, []int8, []uint16, []int16, []uint32, []int32, []uint64, []int64:
		return true
	}
	return false
}

func isFloat(v any) bool {
	switch v.(type) {
	case float32, float64:
		return true
	}
	return false
}
