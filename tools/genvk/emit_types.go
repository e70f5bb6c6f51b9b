package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// writeConsts writes the hardcoded constants and the extension names.
func writeConsts(b *bytes.Buffer, s *selection, names *nameSet) error {
	fmt.Fprint(b, "const (\n")
	for _, v := range s.reg.constants {
		if v.alias != "" {
			continue
		}
		g := s.reg.goConst(v.name)
		if err := names.take(g, v.name); err != nil {
			return err
		}
		switch {
		case g == "True" || g == "False":
			fmt.Fprintf(b, "%s Bool32 = %d\n", g, v.bits)
		case v.bits > 1<<31:
			fmt.Fprintf(b, "%s %s = %#x\n", g, basic[v.typ], v.bits)
		default:
			fmt.Fprintf(b, "%s = %d\n", g, v.bits) // untyped: lengths of arrays and counts of any type
		}
	}
	fmt.Fprint(b, ")\n\n// Names of extensions.\nconst (\n")
	for _, x := range s.extensions() {
		g := s.reg.goConst(x.constant)
		if err := names.take(g, x.constant); err != nil {
			return err
		}
		fmt.Fprintf(b, "%s = %q\n", g, x.name)
	}
	fmt.Fprint(b, ")\n")
	return nil
}

// writeEnums writes enum and flag types with their values.
func writeEnums(b *bytes.Buffer, s *selection, names *nameSet) error {
	if len(s.list.stringers) > 0 {
		fmt.Fprint(b, "import \"strconv\"\n\n")
	}
	for _, t := range s.of("bitmask") {
		if err := names.take(goTypeName(t.name), t.name); err != nil {
			return err
		}
		fmt.Fprintf(b, "// %s is %s.\ntype %s %s\n\n", goTypeName(t.name), t.name, goTypeName(t.name), flagWord(t.wide))
	}
	for _, t := range s.of("enum") {
		if err := writeEnum(b, s, t, names); err != nil {
			return err
		}
	}
	return nil
}

func flagWord(wide bool) string {
	if wide {
		return "uint64"
	}
	return "uint32"
}

func writeEnum(b *bytes.Buffer, s *selection, t *ctype, names *nameSet) error {
	name := goTypeName(t.name)
	if err := names.take(name, t.name); err != nil {
		return err
	}
	g := s.reg.groups[t.name]
	if g == nil {
		g = &group{bitmask: strings.Contains(name, "FlagBits")} // reserved for values to come
	}
	typ, flags := name, s.reg.flagsOf[t.name]
	switch {
	case flags != "":
		// One type for both, so that bits can be or-ed and assigned without conversion.
		typ = goTypeName(flags)
		fmt.Fprintf(b, "// %s is %s.\ntype %s = %s\n\n", name, t.name, name, typ)
	case g.bitmask:
		fmt.Fprintf(b, "// %s is %s.\ntype %s %s\n\n", name, t.name, name, flagWord(g.wide))
	default:
		fmt.Fprintf(b, "// %s is %s.\ntype %s int32\n\n", name, t.name, name)
	}
	values, err := s.resolved(g)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	if len(values) > 0 {
		fmt.Fprint(b, "const (\n")
		written := map[string]uint64{}
		for _, v := range values {
			c := s.reg.goConst(v.name)
			if bits, ok := written[c]; ok && bits == v.bits {
				continue // a misspelt name kept by the registry: CAPABILITIES2 for CAPABILITIES_2
			}
			written[c] = v.bits
			if err := names.take(c, v.name); err != nil {
				return err
			}
			fmt.Fprintf(b, "%s %s = %s\n", c, typ, literal(g, v))
		}
		fmt.Fprint(b, ")\n\n")
	}
	if slices.Contains(s.list.stringers, t.name) {
		writeStringer(b, name, t.name, g, values)
	}
	return nil
}

// resolved returns the values with aliases replaced by numbers.
func (s *selection) resolved(g *group) ([]value, error) {
	number := map[string]uint64{}
	for _, v := range g.values {
		if v.alias == "" {
			number[v.name] = v.bits
		}
	}
	out := slices.Clone(g.values)
	for pass := 0; ; pass++ {
		open := 0
		for i, v := range out {
			if v.alias == "" {
				continue
			}
			if n, ok := number[v.alias]; ok {
				out[i].bits, number[v.name] = n, n
			} else {
				open++
			}
		}
		if open == 0 {
			return out, nil
		}
		if pass > 8 {
			return nil, fmt.Errorf("%d aliases of unknown values", open)
		}
	}
}

// literal writes a value as Go: flags in hexadecimal, others signed.
func literal(g *group, v value) string {
	if g.bitmask {
		return fmt.Sprintf("%#x", v.bits)
	}
	return fmt.Sprint(int64(v.bits))
}

// writeStringer writes a String method that gives C's name.
func writeStringer(b *bytes.Buffer, name, c string, g *group, values []value) {
	fmt.Fprintf(b, "// String returns the name in C.\nfunc (v %s) String() string {\nswitch v {\n", name)
	for _, v := range values {
		if v.alias == "" {
			fmt.Fprintf(b, "case %s:\nreturn %q\n", literal(g, v), v.name)
		}
	}
	fmt.Fprintf(b, "}\nreturn \"%s(\" + strconv.Itoa(int(v)) + \")\"\n}\n\n", c)
}

// writeHandles writes handle types: pointers of the driver, numbers to us.
func writeHandles(b *bytes.Buffer, s *selection, names *nameSet) error {
	for _, t := range s.of("handle") {
		name, word := goTypeName(t.name), "uint64"
		if err := names.take(name, t.name); err != nil {
			return err
		}
		if t.dispatchable {
			word = "uintptr"
		}
		fmt.Fprintf(b, "// %s is %s.\ntype %s %s\n\n", name, t.name, name, word)
	}
	return nil
}

// writeStructs writes structs and unions.
func writeStructs(b *bytes.Buffer, s *selection, names *nameSet) error {
	fmt.Fprint(b, "import \"unsafe\"\n\n")
	for _, t := range s.types {
		if t.category != "struct" && t.category != "union" {
			continue
		}
		if err := names.take(goTypeName(t.name), t.name); err != nil {
			return err
		}
		write := writeStruct
		if t.category == "union" {
			write = writeUnion
		}
		if err := write(b, s, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

func writeStruct(b *bytes.Buffer, s *selection, t *ctype) error {
	name := goTypeName(t.name)
	fmt.Fprintf(b, "// %s is %s.\ntype %s struct {\n", name, t.name, name)
	for i := 0; i < len(t.members); i++ {
		m := t.members[i]
		if m.bits > 0 {
			n, text, err := bitFields(t.members[i:])
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "Bits%d uint32 // %s\n", i, text)
			i += n - 1
			continue
		}
		g, err := s.goType(m)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s %s", goField(m.name), g)
		if m.values != "" && !strings.Contains(m.values, ",") {
			fmt.Fprintf(b, " // %s", s.reg.goConst(m.values))
		}
		fmt.Fprintln(b)
	}
	fmt.Fprint(b, "}\n\n")
	return nil
}

// bitFields counts the leading members that share one 32-bit word; Go has no
// bit-fields, so the caller shifts. The text names them, low bits first.
func bitFields(ms []decl) (n int, text string, err error) {
	bits := 0
	var parts []string
	for _, m := range ms {
		if m.bits == 0 || bits+m.bits > 32 {
			break
		}
		bits += m.bits
		parts = append(parts, fmt.Sprintf("%s:%d", m.name, m.bits))
	}
	if bits != 32 {
		return 0, "", fmt.Errorf("bit-fields %s do not fill a word", strings.Join(parts, " "))
	}
	return len(parts), strings.Join(parts, " "), nil
}

// writeUnion writes a union as words of its size and alignment. One with
// pointers is refused: the garbage collector could not follow them.
func writeUnion(b *bytes.Buffer, s *selection, t *ctype) error {
	size, align := 0, 1
	var parts []string
	for _, m := range t.members {
		if m.stars > 0 {
			return fmt.Errorf("member %q of a union is a pointer", m.c)
		}
		n, a, err := s.size(m)
		if err != nil {
			return err
		}
		size, align = max(size, n), max(align, a)
		parts = append(parts, m.c)
	}
	word, ok := map[int]string{4: "uint32", 8: "uint64"}[align]
	if !ok {
		return fmt.Errorf("a union of alignment %d", align)
	}
	name := goTypeName(t.name)
	fmt.Fprintf(b, "// %s is %s: %s.\ntype %s [%d]%s\n\n", name, t.name, strings.Join(parts, " | "), name, (size+align-1)/align, word)
	return nil
}
