package main

import (
	"bytes"
	"fmt"
	"strings"
)

// writeLayout writes the tables that layout_test.go compares with C.
func writeLayout(b *bytes.Buffer, s *selection, _ *nameSet) error {
	fmt.Fprint(b, "import \"unsafe\"\n\n// structLayouts is Go's view of each struct.\nvar structLayouts = []structLayout{\n")
	for _, t := range s.types {
		switch t.category {
		case "union":
			fmt.Fprintf(b, "{%q, unsafe.Sizeof(%s{}), nil},\n", t.name, goTypeName(t.name))
		case "struct":
			writeStructLayout(b, t)
		}
	}
	fmt.Fprint(b, "}\n\n// enumValues is Go's view of each constant.\nvar enumValues = []enumValue{\n")
	for _, t := range s.of("enum") {
		g := s.reg.groups[t.name]
		if g == nil {
			continue
		}
		for _, v := range g.values {
			if !v.overlay {
				fmt.Fprintf(b, "{%q, bits(%s)},\n", v.name, s.reg.goConst(v.name))
			}
		}
	}
	for _, v := range s.reg.constants {
		if v.alias == "" {
			fmt.Fprintf(b, "{%q, bits(%s)},\n", v.name, s.reg.goConst(v.name))
		}
	}
	fmt.Fprint(b, "}\n\n// extensionNames is Go's view of each extension's name.\nvar extensionNames = []extensionName{\n")
	for _, x := range s.extensions() {
		if !x.overlay {
			fmt.Fprintf(b, "{%q, %s},\n", x.constant, s.reg.goConst(x.constant))
		}
	}
	fmt.Fprint(b, "}\n\n// overlayTypes declares in C what is newer than the headers may be.\nconst overlayTypes = `\n")
	writeOverlayC(b, s)
	fmt.Fprint(b, "`\n")
	return nil
}

// writeStructLayout writes size and offsets; C has no offset of a bit-field.
func writeStructLayout(b *bytes.Buffer, t *ctype) {
	g := goTypeName(t.name)
	fmt.Fprintf(b, "{%q, unsafe.Sizeof(%s{}), []fieldLayout{\n", t.name, g)
	for _, m := range t.members {
		if m.bits == 0 {
			fmt.Fprintf(b, "{%q, unsafe.Offsetof(%s{}.%s)},\n", m.name, g, goField(m.name))
		}
	}
	fmt.Fprint(b, "}},\n")
}

// writeOverlayC declares the selected overlay types, for headers without them.
func writeOverlayC(b *bytes.Buffer, s *selection) {
	for _, x := range s.extensions() {
		if !x.overlay {
			continue
		}
		fmt.Fprintf(b, "#ifndef %s\n", x.name)
		for _, kind := range []string{"enum", "struct"} {
			for _, t := range s.of(kind) {
				switch {
				case !t.overlay || !strings.Contains(" "+strings.Join(x.provides, " ")+" ", " "+t.name+" "):
				case kind == "enum":
					fmt.Fprintf(b, "typedef int32_t %s;\n", t.name)
				default:
					fmt.Fprint(b, "typedef struct {")
					for _, m := range t.members {
						fmt.Fprintf(b, " %s;", m.c)
					}
					fmt.Fprintf(b, " } %s;\n", t.name)
				}
			}
		}
		fmt.Fprint(b, "#endif\n")
	}
}
