package shape_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/tools/testdata"
)

// TestShape: no type, function or file is larger than its limit but for the exceptions, and each exception is needed.
func TestShape(t *testing.T) {
	found := newTree()
	root := testdata.Root(t)
	for _, name := range testdata.Files(t) {
		if !measured(name) {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := found.add(name, source); err != nil {
			t.Fatal(err)
		}
	}
	if len(found.types) < 500 {
		t.Fatalf("found only %d types", len(found.types))
	}
	for _, problem := range judge(found.sizes(plainData), exceptions, plainData) {
		t.Error(problem)
	}
}

// measured tells whether a file counts: tests, test data and generated code don't.
func measured(name string) bool {
	generated := strings.HasPrefix(path.Base(name), "gen_")
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !generated &&
		(!strings.Contains(name, "testdata/") || strings.HasPrefix(name, "tools/testdata/"))
}

// size is how large something is: "methods", "fields", "lines of file" or "lines of function".
type size struct {
	kind, name string
	n, most    int
	embedded   bool // in another type
}

// tree is what the measured files declare.
type tree struct {
	types     map[string]*shape // by folder and name, as "vk.Device"
	files     map[string]int    // lines by name
	functions map[string]int    // lines by folder and name, as "vk.Device.Close"
}

// shape is one type. Methods and fields are sets, because a type may have a file for each operating system.
type shape struct {
	methods, fields map[string]bool
	embedded        map[string]bool // types of the same package, by folder and name
}

func newTree() *tree {
	return &tree{map[string]*shape{}, map[string]int{}, map[string]int{}}
}

func (t *tree) shape(name string) *shape {
	if t.types[name] == nil {
		t.types[name] = &shape{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	}
	return t.types[name]
}

// add takes in a file with slashes in its name.
func (t *tree) add(name string, source []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files[name] = bytes.Count(source, []byte("\n"))
	folder := path.Dir(name)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			full := folder + "." + n.Name.Name
			if n.Recv != nil {
				owner := folder + "." + typeName(n.Recv.List[0].Type)
				t.shape(owner).methods[n.Name.Name] = true
				full = owner + "." + n.Name.Name
			}
			t.functions[full] = max(t.functions[full], set.Position(n.End()).Line-set.Position(n.Pos()).Line+1)
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				t.shape(folder+"."+n.Name.Name).addFields(s, folder)
			}
		}
		return true
	})
	return nil
}

func (s *shape) addFields(of *ast.StructType, folder string) {
	for _, field := range of.Fields.List {
		for _, name := range field.Names {
			s.fields[name.Name] = true
		}
		if field.Names == nil {
			name := typeName(field.Type)
			s.fields[name] = true
			s.embedded[folder+"."+name] = true
		}
	}
}

// typeName is the name of a receiver's or an embedded field's type, without pointer and type arguments.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// sizes lists everything that has a limit. A type that one other embeds, of the same package, is a part of that other: its methods and fields count
// there too, unless it is plain data.
func (t *tree) sizes(plainData map[string]string) (all []size) {
	embeddings := map[string]int{}
	for _, s := range t.types {
		for name := range s.embedded {
			embeddings[name]++
		}
	}
	var count func(name string) (methods, fields int)
	count = func(name string) (methods, fields int) {
		s := t.types[name]
		methods, fields = len(s.methods), len(s.fields)
		for part := range s.embedded {
			if t.types[part] != nil && embeddings[part] == 1 && isData(plainData, part) == "" {
				m, f := count(part)
				methods, fields = methods+m, fields+max(f-1, 0)
			}
		}
		return methods, fields
	}
	for name := range t.types {
		methods, fields := count(name)
		all = append(all, size{"methods", name, methods, mostMethods, embeddings[name] > 0}, size{"fields", name, fields, mostFields, embeddings[name] > 0})
	}
	for name, n := range t.files {
		all = append(all, size{"lines of file", name, n, mostFileLines, false})
	}
	for name, n := range t.functions {
		all = append(all, size{"lines of function", name, n, mostFunctionLines, false})
	}
	return all
}

// isData returns the pattern of plainData that a type matches, "" where none does.
func isData(plainData map[string]string, name string) string {
	for pattern := range plainData {
		if ok, _ := path.Match(pattern, name); ok {
			return pattern
		}
	}
	return ""
}

// judge returns what breaks a limit, and which exceptions are not needed, one sentence each.
func judge(sizes []size, exceptions map[string]exception, plainData map[string]string) (problems []string) {
	needed, data := map[string]bool{}, map[string]bool{}
	for _, s := range sizes {
		pattern := isData(plainData, s.name)
		if s.kind == "fields" && (s.n > s.most || s.embedded) {
			data[pattern] = true
		}
		if s.n <= s.most {
			continue
		}
		key := s.kind + " " + s.name
		allowed, excepted := exceptions[key]
		needed[key] = true
		switch {
		case s.kind == "fields" && pattern != "":
		case !excepted:
			problems = append(problems, fmt.Sprintf("%s has %d %s, at most %d are allowed", s.name, s.n, s.kind, s.most))
		case s.n > allowed.size:
			problems = append(problems, fmt.Sprintf("%s has %d %s and may not grow: it had %d (%s)", s.name, s.n, s.kind, allowed.size, allowed.why))
		}
	}
	for key := range exceptions {
		if !needed[key] {
			problems = append(problems, fmt.Sprintf("%q is within the limit now: take it off the exceptions", key))
		}
	}
	for pattern := range plainData {
		if !data[pattern] {
			problems = append(problems, fmt.Sprintf("%s is within the limit now: take it off plainData", pattern))
		}
	}
	return slices.Sorted(slices.Values(problems))
}

// The test of the test: each rule, broken once.
func TestJudge(t *testing.T) {
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "f%d int\n", i)
		}
		return b.String()
	}
	methods := func(receiver string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "func (%s) M%s%d() {}\n", receiver, strings.Trim(receiver, "*[T]"), i)
		}
		return b.String()
	}
	excepted := func(key string, n int) map[string]exception { return map[string]exception{key: {n, "for a test"}} }
	tests := map[string]struct {
		files      map[string]string
		exceptions map[string]exception
		data       map[string]string
		want       string // the only problem begins so; "": none
	}{
		"all at the limit": {map[string]string{"vk/a.go": "type T struct {\n" + fields(15) + "}\n" + methods("*T", 25)}, nil, nil, ""},
		"a method more":    {map[string]string{"vk/a.go": "type T int\n" + methods("T", 20), "vk/b.go": "func (t *T) A() {}\nfunc (t *T) B() {}\nfunc (t *T) C() {}\nfunc (t *T) D() {}\nfunc (t *T) E() {}\nfunc (t *T) F() {}"}, nil, nil, "vk.T has 26 methods"},
		"a system each":    {map[string]string{"vk/a_linux.go": "type T int\n" + methods("T", 20), "vk/a_windows.go": "type T int\n" + methods("T", 20)}, nil, nil, ""},
		"a generic type":   {map[string]string{"vk/a.go": "type T[E any] struct{}\n" + methods("*T[E]", 26)}, nil, nil, "vk.T has 26 methods"},
		"a field more":     {map[string]string{"vk/a.go": "type T struct {\na, b int\n" + fields(14) + "}"}, nil, nil, "vk.T has 16 fields"},
		"a part embedded":  {map[string]string{"vk/a.go": "type u struct{}\ntype T struct { *u }\n" + methods("*T", 13) + methods("*u", 13)}, nil, nil, "vk.T has 26 methods"},
		"embedded twice":   {map[string]string{"vk/a.go": "type u struct{}\ntype T struct { *u }\ntype S struct { u }\n" + methods("*T", 13) + methods("*u", 13)}, nil, nil, ""},
		"from elsewhere":   {map[string]string{"vk/a.go": "import \"leat/vk/mem\"\ntype T struct { *mem.U }\n" + methods("*T", 13), "vk/mem/a.go": "type U struct{}\n" + methods("*U", 13)}, nil, nil, ""},
		"embedded fields":  {map[string]string{"vk/a.go": "type U struct {\n" + fields(8) + "}\ntype T struct { U\n" + strings.ReplaceAll(fields(8), "f", "g") + "}"}, nil, nil, "vk.T has 16 fields"},
		"plain data":       {map[string]string{"vk/a.go": "type T struct {\n" + fields(16) + "}"}, nil, map[string]string{"vk.T": "options"}, ""},
		"no longer data":   {map[string]string{"vk/a.go": "type T struct {\n" + fields(15) + "}"}, nil, map[string]string{"vk.T": "options"}, "vk.T is within the limit now"},
		"a long file":      {map[string]string{"vk/a.go": strings.Repeat("\n", 400)}, nil, nil, "vk/a.go has 401 lines of file"},
		"a long function":  {map[string]string{"vk/a.go": "func f() {\n" + strings.Repeat("\n", 59) + "}"}, nil, nil, "vk.f has 61 lines of function"},
		"a long method":    {map[string]string{"vk/a.go": "func (t *T) f() {\n" + strings.Repeat("\n", 59) + "}"}, nil, nil, "vk.T.f has 61 lines of function"},
		"an exception":     {map[string]string{"vk/a.go": methods("T", 27)}, excepted("methods vk.T", 27), nil, ""},
		"it grew":          {map[string]string{"vk/a.go": methods("T", 28)}, excepted("methods vk.T", 27), nil, "vk.T has 28 methods and may not grow"},
		"it shrank":        {map[string]string{"vk/a.go": methods("T", 26)}, excepted("methods vk.T", 27), nil, ""},
		"no longer needed": {map[string]string{"vk/a.go": methods("T", 25)}, excepted("methods vk.T", 27), nil, `"methods vk.T" is within the limit now`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			found := newTree()
			for _, file := range slices.Sorted(maps.Keys(tt.files)) {
				if err := found.add(file, []byte("package x\n"+tt.files[file])); err != nil {
					t.Fatal(err)
				}
			}
			problems := judge(found.sizes(tt.data), tt.exceptions, tt.data)
			if tt.want == "" && len(problems) > 0 || tt.want != "" && (len(problems) != 1 || !strings.HasPrefix(problems[0], tt.want)) {
				t.Errorf("problems: %q, want one that begins with %q", problems, tt.want)
			}
		})
	}
}
