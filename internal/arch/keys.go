package arch

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"leat/gguf"
)

// keys reads the hyperparameters of one architecture from a file's metadata. It keeps the first error, and callers may go on reading until they check err.
// [keys.audit] judges the keys that were not read. So some callers read a key and drop its value: this checks the value's type and keeps audit from refusing the key.
type keys struct {
	md   *gguf.Metadata  // the file's metadata
	arch string          // name of the architecture, the first part of its keys
	read map[string]bool // keys that were read, by name with the architecture
	err  error           // the first error; nil: none so far

	layers     int                         // number of layers, for keys that may have a value for each
	predicting int                         // Hyper.predictionLayers: keys with a value for each layer may have values for these layers, too
	assumed    map[string]any              // by name with the architecture: the values that were taken for keys that the file does not have
	shape      func(tensor string) []int64 // shape of the file's tensor of this name; nil: it has none. Some files say only by tensors what their keys leave out.
}

// newKeys makes keys that reads md, of a file without tensors. No key counts as read yet. arch is the name of the architecture.
func newKeys(md *gguf.Metadata, arch string) *keys {
	return &keys{md: md, arch: arch, read: map[string]bool{}, assumed: map[string]any{}, shape: func(string) []int64 { return nil }}
}

// rows is the number of rows, the outermost length, of the tensor NAME.weight of layer l; 0: the file has no such tensor.
func (k *keys) rows(l int, name string) int {
	if s := k.shape(fmt.Sprintf("blk.%d.%s.weight", l, name)); len(s) > 0 {
		return int(s[0])
	}
	return 0
}

// perLayer reports whether an array of n values can have one for each layer.
func (k *keys) perLayer(n int) bool { return n > 0 && (n == k.layers || n == k.layers+k.predicting) }

const maxDim = 1 << 24 // largest integer accepted for a key: real models stay far below, and products of such numbers fit an int64

// lookUp returns a key's whole name and its value, and marks the key as read. If the file does not have the key, found is false, and assumed notes fallback unless that is
// nil. name is without the architecture, as in the methods below.
func (k *keys) lookUp(name string, fallback any) (key string, v any, found bool) {
	key = k.arch + "." + name
	k.read[key] = true
	if v, found = k.md.Get(key); !found && fallback != nil {
		k.assumed[key] = fallback
	}
	return key, v, found
}

// int reads an integer of any width, or an array that has the same integer for every layer. If the file does not have the key, it returns fallback; a fallback
// below 0 means that the key is required. A value of another type, or out of range, is an error, and int returns 0.
func (k *keys) int(name string, fallback int) int {
	key, v, found := k.lookUp(name, fallback)
	if !found {
		if fallback < 0 {
			k.fail("key %q is missing", key)
		}
		return fallback
	}
	n, ok := oneInt(k, key)
	switch {
	case !isInteger(v):
		k.wrongType(key, v, "an integer")
	case !ok:
		k.fail("key %q: found values that are not one integer, alone or for each layer", key)
	case n < 0 || n > maxDim:
		k.fail("key %q: found %d, wanted 0 to %d", key, n, maxDim)
	default:
		return int(n)
	}
	return 0
}

// atLeastOne is [keys.int] for a key that every file has, of a value of 1 or more.
func (k *keys) atLeastOne(name string) int {
	n := k.int(name, -1)
	if n < 1 {
		k.fail("key %q: found %d, wanted at least 1", k.arch+"."+name, n)
	}
	return n
}

// ints reads an integer for each layer: those of an array, or one for all layers. If the file does not have the key, it is a copy of fallback; nil makes that an
// error.
func (k *keys) ints(name string, fallback []int) []int {
	all := make([]int, k.layers)
	key, v, found := k.lookUp(name, nil)
	if !found {
		if fallback == nil {
			k.fail("key %q is missing", key)
		}
		copy(all, fallback)
		return all
	}
	if !isInteger(v) {
		k.wrongType(key, v, "an integer")
		return all
	}
	one, same := oneInt(k, key)
	many, _ := k.md.Ints(key)
	if !same && !k.perLayer(len(many)) {
		k.fail("key %q: found %d values, wanted one for each of %d layers", key, len(many), k.layers)
		return all
	}
	for l := range all {
		n := one
		if !same {
			n = many[l]
		}
		if n < 0 || n > maxDim {
			k.fail("key %q: found %d, wanted 0 to %d", key, n, maxDim)
			return all
		}
		all[l] = int(n)
	}
	return all
}

// pattern reads which layers are of a kind. The key's value is a bool, or a 0 or 1, for each layer; or it is a period of n layers, and inPeriod(l, n) reports whether layer l
// is of the kind. Without the key, n is period. With inPeriod nil, the key is required, and must have a value for each layer.
func (k *keys) pattern(name string, period int, inPeriod func(l, n int) bool) []bool {
	all := make([]bool, k.layers)
	key, v, found := k.lookUp(name, period)
	layers, ok := v.([]bool)
	if many, several := k.md.Ints(key); several {
		for _, n := range many {
			layers = append(layers, n != 0)
		}
		ok = true
	}
	switch n, one := k.md.Int(key); {
	case ok && !k.perLayer(len(layers)):
		k.fail("key %q: found %d values, wanted one for each of %d layers", key, len(layers), k.layers)
		return all
	case ok:
		copy(all, layers)
		return all
	case !found && inPeriod == nil:
		k.fail("key %q is missing", key)
		return all
	case found && (inPeriod == nil || !one || n < 2 || n > maxDim):
		k.wrongType(key, v, "a bool for each layer, or an integer from 2 on")
		return all
	case found:
		period = int(n)
	}
	for l := range all {
		all[l] = inPeriod(l, period)
	}
	return all
}

// everyLayer has true for each layer.
func (k *keys) everyLayer() []bool {
	all := make([]bool, k.layers)
	for l := range all {
		all[l] = true
	}
	return all
}

// allButLast reports whether layer l is not the last of its period of n layers. It is for [keys.pattern], as is allButFirst.
func allButLast(l, n int) bool { return l%n < n-1 }

// allButFirst reports whether layer l is not the first of its period of n layers.
func allButFirst(l, n int) bool { return l%n > 0 }

// oneInt is the integer of a key, or the integer that the key's array has for every layer. It reports false if the array has another number of integers or
// they differ, or the key has no integer.
func oneInt(k *keys, key string) (int64, bool) {
	if n, ok := k.md.Int(key); ok {
		return n, true
	}
	all, ok := k.md.Ints(key)
	if !ok || !k.perLayer(len(all)) {
		return 0, false
	}
	for _, n := range all {
		ok = ok && n == all[0]
	}
	return all[0], ok
}

// float reads a finite float32 or float64; fallback if the file does not have the key. Anything else is an error, and fallback.
func (k *keys) float(name string, fallback float64) float64 {
	key, v, found := k.lookUp(name, fallback)
	if !found {
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

// positive is [keys.float] for a value above 0.
func (k *keys) positive(name string, fallback float64) float64 {
	x := k.float(name, fallback)
	if float32(x) <= 0 {
		k.fail("key %q: found %g, wanted a positive number", k.arch+"."+name, x)
		return fallback
	}
	return x
}

// atLeastZero is [keys.float] for a value of 0 or more.
func (k *keys) atLeastZero(name string, fallback float64) float64 {
	x := k.float(name, fallback)
	if x < 0 {
		k.fail("key %q: found %g, wanted 0 or more", k.arch+"."+name, x)
		return fallback
	}
	return x
}

// factor reads a factor above 0; fallback if the file does not have the key, or has 0, which means that the factor is not used.
func (k *keys) factor(name string, fallback float32) float32 {
	if x := float32(k.atLeastZero(name, 0)); x > 0 {
		return x
	}
	return fallback
}

// floats reads a float for each layer, from an array; zeros if the file does not have the key. Anything else is an error, and zeros.
func (k *keys) floats(name string) []float64 {
	key, v, _ := k.lookUp(name, nil)
	return layerFloats(k, key, v)
}

// unprefixedFloats is [keys.floats] of a key that is required, and that does not begin with the architecture's name.
func unprefixedFloats(k *keys, key string) []float64 {
	k.read[key] = true
	v, found := k.md.Get(key)
	if !found {
		k.fail("key %q is missing", key)
	}
	return layerFloats(k, key, v)
}

// layerFloats is the floats of v, the value of a key: an array of one for each layer. It is zeros if v is nil. Anything else is an error, and zeros.
func layerFloats(k *keys, key string, v any) []float64 {
	all := make([]float64, k.layers)
	many, _ := k.md.Floats(key)
	switch {
	case v == nil:
		return all
	case kindOf(v) != "float":
		k.wrongType(key, v, "a float for each layer")
		return all
	case !k.perLayer(len(many)):
		k.fail("key %q: found %d values, wanted one for each of %d layers", key, len(many), k.layers)
		return all
	}
	for l := range all {
		if all[l] = float64(many[l]); !finite(all[l]) {
			k.fail("key %q: found %g, wanted a finite number", key, all[l])
		}
	}
	return all
}

// bool reads a bool; fallback if the file does not have the key.
func (k *keys) bool(name string, fallback bool) bool {
	key, v, found := k.lookUp(name, fallback)
	if !found {
		return fallback
	}
	b, ok := v.(bool)
	if !ok {
		k.wrongType(key, v, "a bool")
		return fallback
	}
	return b
}

// text reads a string; fallback if the file does not have the key.
func (k *keys) text(name, fallback string) string {
	key, v, found := k.lookUp(name, fallback)
	if !found {
		return fallback
	}
	s, ok := v.(string)
	if !ok {
		k.wrongType(key, v, "a string")
		return fallback
	}
	return s
}

// wrongType keeps an error: the key's value v is not of the wanted type.
func (k *keys) wrongType(key string, v any, wanted string) {
	k.fail("key %q: found %s, wanted %s", key, gguf.TypeName(v), wanted)
}

// fail keeps an error, unless there is an earlier one.
func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf("read hyperparameters: "+format, args...)
	}
}

// hasAny reports whether the file has a key whose name begins so.
func hasAny(k *keys, prefix string) bool {
	return slices.ContainsFunc(k.md.Keys(), func(key string) bool { return strings.HasPrefix(key, k.arch+"."+prefix) })
}

// finite reports whether x is a number that a float32 holds.
func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat32 }

// isInteger reports whether a value is an integer or an array of integers.
func isInteger(v any) bool {
	switch v.(type) {
	case uint8, int8, uint16, int16, uint32, int32, uint64, int64, []uint8, []int8, []uint16, []int16, []uint32, []int32, []uint64, []int64:
		return true
	}
	return false
}

// isFloat reports whether a value is a float32 or float64.
func isFloat(v any) bool {
	switch v.(type) {
	case float32, float64:
		return true
	}
	return false
}
