package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// decl is one struct member or parameter.
type decl struct {
	name, typ string   // typ is the bare C type
	stars     int      // levels of pointer
	dims      []string // array lengths, numbers or constants, outermost first
	bits      int      // width of a bit-field, else 0
	c         string   // as C writes it
	values    string   // the one value an sType may have
}

var (
	dimension = regexp.MustCompile(`\[\s*(\w+)\s*\]`)
	bitWidth  = regexp.MustCompile(`:\s*(\d+)$`)
)

// parseDecl reads a <member> or <param>: C text around <type> and <name>.
func parseDecl(n *node) (decl, error) {
	d := decl{name: n.child("name"), typ: n.child("type"), c: n.flat(), values: n.attr["values"]}
	if d.name == "" || d.typ == "" {
		return d, fmt.Errorf("declaration %q lacks a name or a type", d.c)
	}
	d.stars = strings.Count(d.c, "*")
	for _, m := range dimension.FindAllStringSubmatch(d.c, -1) {
		d.dims = append(d.dims, m[1])
	}
	if m := bitWidth.FindStringSubmatch(d.c); m != nil {
		d.bits, _ = strconv.Atoi(m[1]) // the pattern matched digits
	}
	return d, nil
}

// basic maps C's own types and Vulkan's plain numbers to Go.
var basic = map[string]string{
	"uint8_t": "uint8", "uint16_t": "uint16", "uint32_t": "uint32", "uint64_t": "uint64",
	"int8_t": "int8", "int16_t": "int16", "int32_t": "int32", "int64_t": "int64", "int": "int32",
	"float": "float32", "double": "float64", "size_t": "uintptr", "char": "byte",
	"VkBool32": "Bool32", "VkDeviceSize": "uint64", "VkDeviceAddress": "uint64",
	"VkFlags": "uint32", "VkFlags64": "uint64", "VkSampleMask": "uint32",
}

// goType returns the Go type of d and adds what it names to the selection.
func (s *selection) goType(d decl) (string, error) {
	stars := d.stars
	var base string
	if d.typ == "void" {
		if stars == 0 {
			return "", fmt.Errorf("%q: void is no value", d.c)
		}
		base, stars = "unsafe.Pointer", stars-1
	} else {
		var err error
		if base, err = s.named(d.typ); err != nil {
			return "", fmt.Errorf("%q: %w", d.c, err)
		}
	}
	return s.dims(d) + strings.Repeat("*", stars) + base, nil
}

// dims writes array lengths as Go does: outermost first, as in C.
func (s *selection) dims(d decl) string {
	var b strings.Builder
	for _, n := range d.dims {
		if strings.HasPrefix(n, "VK_") {
			n = s.reg.goConst(n)
		}
		b.WriteString("[" + n + "]")
	}
	return b.String()
}

// named returns the Go name of a C type and selects it.
func (s *selection) named(c string) (string, error) {
	if g, ok := basic[c]; ok {
		return g, nil
	}
	if strings.HasPrefix(c, "PFN_") {
		return "uintptr", nil
	}
	t, err := s.add(c)
	if err != nil {
		return "", err
	}
	return goTypeName(t.name), nil
}

// goParam returns the Go type of a parameter: C passes arrays as pointers.
func (s *selection) goParam(d decl) (string, error) {
	if len(d.dims) > 0 {
		d.dims, d.stars = d.dims[1:], d.stars+1
		g, err := s.goType(decl{typ: d.typ, stars: d.stars - 1, dims: d.dims, c: d.c})
		return "*" + g, err
	}
	return s.goType(d)
}

func goTypeName(c string) string { return strings.TrimPrefix(c, "Vk") }

func goField(c string) string { return strings.ToUpper(c[:1]) + c[1:] }

// goConst turns VK_QUERY_RESULT_64_BIT into QueryResult64Bit. A vendor tag at
// either end keeps its capitals: StructureTypeDebugUtilsLabelEXT.
func (r *registry) goConst(c string) string {
	words := strings.Split(strings.TrimPrefix(c, "VK_"), "_")
	for i, w := range words {
		if r.tags[w] && (i == 0 || i == len(words)-1) {
			continue
		}
		words[i] = capital(w)
	}
	return strings.Join(words, "")
}

// capital lowers all letters but the first of each run: DEVICE -> Device, 8BIT -> 8Bit.
func capital(w string) string {
	b := []byte(strings.ToLower(w))
	for i := range b {
		if i == 0 || b[i-1] >= '0' && b[i-1] <= '9' {
			b[i] = strings.ToUpper(string(b[i]))[0]
		}
	}
	return string(b)
}

// goParamName keeps C's name unless Go owns it, or the method body does.
func goParamName(c string) string {
	switch c {
	case "range", "type", "func", "map", "f", "c", "call":
		return c + "_"
	}
	return c
}
