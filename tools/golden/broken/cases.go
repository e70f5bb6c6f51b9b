package broken

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"leat/gguf"
)

// Case is a broken file.
type Case struct {
	Kind   string // what is wrong: "key is missing", say
	Target string // the key or tensor that is wrong; "": the whole file is
	Value  bool   // a key has another value of its type: the file may be whole, and another model's

	file func() *Image
}

// String names the case.
func (c *Case) String() string { return strings.TrimSpace(c.Kind + " " + c.Target) }

// File is the broken file.
func (c *Case) File() *Image { return c.file() }

// Cases lists the broken files of a GGUF file, always in the same order.
func Cases(g *gguf.File) ([]Case, error) {
	f, err := contentOf(g)
	if err != nil {
		return nil, err
	}
	var cases []Case
	for i := range f.pairs {
		cases = append(cases, f.keyCases(i)...)
	}
	for i := range f.tensors {
		cases = append(cases, f.tensorCases(i)...)
	}
	header := int64(len(f.image().header))
	size := f.image().size - alignment
	for eighth := range int64(8) {
		for _, end := range []int64{header * eighth / 8, size - (size-header)*eighth/8} {
			cases = append(cases, Case{Kind: fmt.Sprintf("file ends at %d", end), file: func() *Image {
				m := f.image()
				m.size = end
				return m
			}})
		}
	}
	return cases, nil
}

// keyCases lists the files in which key number i is broken.
func (f *file) keyCases(i int) (cases []Case) {
	key, value := f.pairs[i].key, f.pairs[i].value
	add := func(kind string, pairs func() []pair) {
		cases = append(cases, Case{Kind: "key " + kind, Target: key, file: func() *Image {
			return (&file{pairs: pairs(), tensors: f.tensors}).image()
		}})
	}
	set := func(kind string, v any) {
		add(kind, func() []pair {
			pairs := slices.Clone(f.pairs)
			pairs[i] = newPair(key, v)
			return pairs
		})
	}
	add("is missing", func() []pair { return slices.Delete(slices.Clone(f.pairs), i, i+1) })
	add("stands twice", func() []pair { return append(slices.Clone(f.pairs), f.pairs[i]) })
	for _, v := range []any{"x", uint32(1), float32(1), true, []string{"x"}, []int32{1}, []float32{1}, []bool{true}} {
		if class(v) != class(value) {
			set("becomes "+gguf.TypeName(v), v)
		}
	}
	if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
		arrays := resized(list)
		for _, kind := range slices.Sorted(maps.Keys(arrays)) {
			set(kind, arrays[kind].Interface())
		}
	} else {
		one := reflect.Append(reflect.MakeSlice(reflect.SliceOf(list.Type()), 0, 1), list)
		set("becomes an array of one", one.Interface())
	}
	first := len(cases)
	for _, v := range hostile[class(value)] {
		if !reflect.DeepEqual(v, value) {
			set(fmt.Sprintf("has the value %v:", v), v)
		}
	}
	for j := range cases[first:] {
		cases[first+j].Value = true
	}
	return cases
}

// hostile is values that hardly a model has, by class.
var hostile = map[string][]any{
	"integer": {uint32(0), int32(-1), uint32(7), uint32(1<<31 - 1), uint64(1 << 40), uint64(math.MaxUint64)},
	"float":   {float32(0), float32(-1), float32(math.NaN()), float32(math.Inf(1)), float32(math.MaxFloat32), 1e300},
	"string":  {"", "x", strings.Repeat("x", 1<<16)},
}

// resized is the array list with another number of elements, by the kind of case.
func resized(list reflect.Value) map[string]reflect.Value {
	all := map[string]reflect.Value{"becomes an empty array": list.Slice(0, 0)}
	if n := list.Len(); n > 0 {
		all["becomes its first element"] = list.Index(0)
		all["loses its last element"] = list.Slice(0, n-1)
		all["has its last element twice"] = reflect.Append(list.Slice3(0, n, n), list.Index(n-1))
	}
	return all
}

// class is the type of a value without its width.
func class(v any) string {
	t, array := reflect.TypeOf(v), ""
	if t.Kind() == reflect.Slice {
		t, array = t.Elem(), "array of "
	}
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return array + "float"
	case reflect.Bool, reflect.String:
		return array + t.Kind().String()
	}
	return array + "integer"
}

// tensorCases lists the files in which tensor number i is broken.
func (f *file) tensorCases(i int) (cases []Case) {
	add := func(kind string, tensors func() []tensor) {
		cases = append(cases, Case{Kind: "tensor " + kind, Target: f.tensors[i].name, file: func() *Image {
			return (&file{pairs: f.pairs, tensors: tensors()}).image()
		}})
	}
	edit := func(kind string, change func(t *tensor)) {
		add(kind, func() []tensor {
			tensors := slices.Clone(f.tensors)
			t := &tensors[i]
			t.shape = slices.Clone(t.shape)
			change(t)
			return tensors
		})
	}
	add("is missing", func() []tensor { return slices.Delete(slices.Clone(f.tensors), i, i+1) })
	add("stands twice", func() []tensor { return append(slices.Clone(f.tensors), f.tensors[i]) })
	edit("has another name", func(t *tensor) { t.name += "x" })
	edit("has an unknown type", func(t *tensor) { t.typ = 999 })
	edit("lies behind the end", func(t *tensor) { t.off = 1 << 40 })
	edit("lies where none may", func(t *tensor) { t.off = 1 })
	if i > 0 {
		edit("lies on another", func(t *tensor) { t.off = 0 })
	}
	for _, typ := range []gguf.Type{gguf.F32, gguf.F16, gguf.I32, gguf.Q8_0, gguf.Q4_K} {
		if t := f.tensors[i]; t.typ != typ && t.shape[len(t.shape)-1]%int64(typ.BlockSize()) == 0 {
			edit("is "+typ.String(), func(t *tensor) { t.typ = typ; t.fit() })
		}
	}
	shapes := reshaped(f.tensors[i].shape)
	for _, kind := range slices.Sorted(maps.Keys(shapes)) {
		edit(kind, func(t *tensor) { t.shape = shapes[kind]; t.fit() })
	}
	return cases
}

// reshaped is other shapes than s, by the kind of case.
func reshaped(s []int64) map[string][]int64 {
	n := len(s)
	with := func(at int, d int64) []int64 {
		c := slices.Clone(s)
		c[at] = d
		return c
	}
	all := map[string][]int64{
		"has a column more": with(n-1, s[n-1]+1), "has a row more": with(0, s[0]+1), "has half its columns": with(n-1, s[n-1]/2),
		"has no rows": with(0, 0), "has 2⁶⁰ rows": with(0, 1<<60),
		"has a dimension of 1 first": append([]int64{1}, s...), "has a dimension of 1 last": append(slices.Clone(s), 1),
		"has five dimensions": {1, 1, 1, 1, s[n-1]},
	}
	if s[0] > 1 {
		all["has a row less"] = with(0, s[0]-1)
	}
	if s[0]%2 == 0 {
		all["has its first dimension in two"] = append([]int64{2, s[0] / 2}, s[1:]...)
	}
	if n < 2 {
		return all
	}
	if s[n-1] != s[n-2] {
		all["is turned"] = slices.Concat(s[:n-2], []int64{s[n-1], s[n-2]})
	}
	all["is flat"] = append([]int64{s[0] * s[1]}, s[2:]...)
	return all
}
