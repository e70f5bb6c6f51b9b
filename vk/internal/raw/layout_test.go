package raw

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
)

// structLayout is the size of a struct, or union, and the offsets of its fields.
type structLayout struct {
	C      string
	size   uintptr
	Fields []fieldLayout
}

type fieldLayout struct {
	C   string
	off uintptr
}

type enumValue struct {
	C     string
	value uint64
}

type extensionName struct{ C, name string }

// bits is v as C's unsigned long long has it.
func bits[T ~int | ~int32 | ~uint32 | ~uint64](v T) uint64 { return uint64(v) }

// layoutProgram prints what the C compiler makes of the headers, one fact a
// line. VK_NO_PROTOTYPES: nothing is linked.
var layoutProgram = template.Must(template.New("layout.c").Parse(`
#define VK_NO_PROTOTYPES
#define VK_ENABLE_BETA_EXTENSIONS
#include <stddef.h>
#include <stdio.h>
#include <vulkan/vulkan.h>
{{.Overlay}}
int main(void) {
{{- range .Structs}}
	printf("sizeof {{.C}} %zu\n", sizeof({{.C}}));
	{{- $s := .C}}{{range .Fields}}
	printf("offsetof {{$s}}.{{.C}} %zu\n", offsetof({{$s}}, {{.C}}));
	{{- end}}
{{- end}}
{{- range .Enums}}
	printf("value {{.C}} %llu\n", (unsigned long long){{.C}});
{{- end}}
{{- range .Extensions}}
	printf("name {{.C}} %s\n", {{.C}});
{{- end}}
	return 0;
}
`))

// TestLayout compares every struct, constant and name with the C headers.
func TestLayout(t *testing.T) {
	inC := runC(t)
	check := func(what string, got any) {
		t.Helper()
		want, ok := inC[what]
		if !ok {
			t.Errorf("C printed nothing for %s", what)
		} else if g := fmt.Sprint(got); g != want {
			t.Errorf("%s is %s in Go, %s in C", what, g, want)
		}
	}
	for _, s := range structLayouts {
		check("sizeof "+s.C, s.size)
		for _, f := range s.Fields {
			check("offsetof "+s.C+"."+f.C, f.off)
		}
	}
	for _, e := range enumValues {
		check("value "+e.C, e.value)
	}
	for _, x := range extensionNames {
		check("name "+x.C, x.name)
	}
	t.Logf("%d structs, %d constants, %d names, %d facts from C", len(structLayouts), len(enumValues), len(extensionNames), len(inC))
}

// runC compiles and runs the program and returns its lines as what -> value.
func runC(t *testing.T) map[string]string {
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	var text bytes.Buffer
	err := layoutProgram.Execute(&text, map[string]any{"Overlay": overlayTypes, "Structs": structLayouts, "Enums": enumValues, "Extensions": extensionNames})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(src, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	compile(t, src, "-o", bin)
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatalf("run the layout program: %v", err)
	}
	facts := map[string]string{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		facts[line[:i]] = line[i+1:]
	}
	return facts
}
