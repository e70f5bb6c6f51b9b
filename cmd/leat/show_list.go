package main

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/gguf"
)

// typeReport is the weights of one type.
type typeReport struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

// keyReport is a key of a file. Of an array it has the first elements.
type keyReport struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Count int    `json:"count,omitempty"` // elements of an array
	Value any    `json:"value"`
}

// tensorReport is a tensor; experts of a stack count as one tensor, as in a GGUF.
type tensorReport struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"`
	Bytes int64   `json:"bytes"`
}

// listTensors lists a model's tensors in the order of its units.
func listTensors(m *pack.Model) (list []tensorReport) {
	stacks := map[string]int{} // tensors of experts, by name: their place in the list
	for i := range m.Units {
		u := &m.Units[i]
		for _, t := range u.Tensors {
			at, stacked := stacks[t.Name]
			switch {
			case u.Kind == pack.Experts && stacked:
				list[at].Shape[0]++
				list[at].Bytes += t.Bytes
				continue
			case u.Kind == pack.Experts:
				stacks[t.Name] = len(list)
				t.Shape = append([]int64{1}, t.Shape...)
			}
			list = append(list, tensorReport{t.Name, t.Type.String(), t.Shape, t.Bytes})
		}
	}
	return list
}

// sumTypes adds up the tensors of each type, the type with most bytes first.
func sumTypes(m *pack.Model) (types []typeReport, bytes int64) {
	for _, t := range listTensors(m) {
		i := slices.IndexFunc(types, func(r typeReport) bool { return r.Type == t.Type })
		if i < 0 {
			i, types = len(types), append(types, typeReport{Type: t.Type})
		}
		types[i].Tensors++
		types[i].Bytes += t.Bytes
		bytes += t.Bytes
	}
	slices.SortStableFunc(types, func(a, b typeReport) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return types, bytes
}

// listMetadata lists a file's keys.
func listMetadata(md *gguf.Metadata) (list []keyReport) {
	const most = 3 // elements of an array
	for _, key := range md.Keys() {
		r := keyReport{Key: key}
		array, isArray := md.Elements(key)
		switch {
		case isArray && array.Type == gguf.String: // not Get, which makes all strings
			r.Value = append([]string{}, array.Strings(most)...)
		case isArray:
			v, _ := md.Get(key)
			list := reflect.ValueOf(v)
			first := make([]any, min(most, array.Len))
			for i := range first {
				first[i] = jsonable(list.Index(i).Interface())
			}
			r.Value = first
		default:
			v, _ := md.Get(key)
			r.Value = jsonable(v)
			r.Type = strings.TrimPrefix(strings.TrimPrefix(gguf.TypeName(v), "an "), "a ")
		}
		if isArray {
			r.Type, r.Count = "array of "+array.Type.String(), array.Len
		}
		list = append(list, r)
	}
	return list
}

// jsonable is a value in a form that JSON has: numbers that are none become text.
func jsonable(v any) any {
	if x := reflect.ValueOf(v); x.CanFloat() && (x.Float()-x.Float() != 0) {
		return fmt.Sprint(v)
	}
	return v
}

func (r *showReport) print(w io.Writer) {
	field := func(label, text string) { fmt.Fprintf(w, "  %-14s%s\n", label, text) }
	fmt.Fprintf(w, "%s: %s\n", r.Model, cmp.Or(printable(r.Name), "a model without a name"))
	if r.Runs {
		field("architecture", r.Architecture+", which leat runs")
	} else {
		field("architecture", cmp.Or(printable(r.Architecture), "none"))
		field("does not run", r.Lacks)
		if r.Hint != "" {
			field("", r.Hint)
		}
	}
	s := &r.Shape
	text := fmt.Sprintf("%d layers of width %d, %d heads, %d for keys; context %d; %d tokens", s.Layers, s.Width, s.Heads, s.KeyHeads, s.Context, s.Vocabulary)
	if s.Experts > 0 {
		text += fmt.Sprintf("; %d experts, a token uses %d", s.Experts, s.ExpertsUsed)
	}
	if s.Layers > 0 {
		field("shape", text)
	}
	files := "1 file"
	if r.Files != 1 {
		files = fmt.Sprintf("%d files", r.Files)
	}
	field("weights", fmt.Sprintf("%s in %s", formatSize(r.Bytes), files))
	for _, t := range r.Types {
		field("", fmt.Sprintf("%-8s %5d tensors, %s", t.Type, t.Tensors, formatSize(t.Bytes)))
	}
	field("tokenizer", r.Tokenizer.String())
	template := "none"
	if r.Tokenizer.TemplateBytes > 0 {
		template = fmt.Sprintf("%d bytes, see --template", r.Tokenizer.TemplateBytes)
	}
	field("chat template", template)
	for _, n := range r.Notes {
		field("note", n)
	}
	if r.Fit.KVBytes > 0 {
		field("KV cache", fmt.Sprintf("%s a token, as %s", formatSize(r.Fit.KVBytes), r.Fit.KVType))
	}
	field("fits", r.Fit.Text)
}

// String is one line.
func (t *tokenizerReport) String() string {
	if t.Model == "" {
		return "none: the model runs on token ids"
	}
	text := t.Model
	if t.Pre != "" {
		text += ", " + t.Pre
	}
	text += fmt.Sprintf(": %d tokens", t.Tokens)
	if t.BOS != nil {
		text += fmt.Sprintf(", BOS %d", *t.BOS)
	}
	if t.EOS != nil {
		text += fmt.Sprintf(", EOS %d", *t.EOS)
	}
	if t.Lacks != "" {
		text += "; " + t.Lacks
	}
	return text
}

func printMetadata(w io.Writer, list []keyReport) {
	fmt.Fprintln(w, "\nmetadata")
	for _, k := range list {
		fmt.Fprintf(w, "  %s (%s): %s\n", printable(k.Key), k.Type, k.text())
	}
}

// text is the value, cut where it is long.
func (k *keyReport) text() string {
	const most = 200
	text := printable(fmt.Sprint(k.Value))
	switch k.Value.(type) {
	case string, []string:
		text = fmt.Sprintf("%q", k.Value)
	}
	if cut := []rune(text); len(cut) > most {
		text = string(cut[:most]) + "…"
	}
	if k.Count > 0 {
		text += fmt.Sprintf(", %d in all", k.Count)
	}
	return text
}

func printTensors(w io.Writer, list []tensorReport) {
	fmt.Fprintln(w, "\ntensors, outermost dimension first")
	for _, t := range list {
		fmt.Fprintf(w, "  %-40s %-8s %-24s %s\n", printable(t.Name), t.Type, fmt.Sprint(t.Shape), formatSize(t.Bytes))
	}
}
