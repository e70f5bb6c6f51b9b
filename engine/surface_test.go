package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"leat/engine"
	"leat/tools/testdata"
)

// ofCommands are the names of package engine that only leat's own commands can use: they speak of internal packages.
var ofCommands = map[string]bool{"Details": true, "TraceOf": true, "RequestOf": true, "Rehearse": true}

// What packages export for embedders names no internal package: other modules could not name such a type.
func TestSurface(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range []string{"engine", "engine/chat", "engine/sample", "engine/token", "gguf", "decompose", "decompose/pack"} {
		paths, err := filepath.Glob(filepath.Join(testdata.Root(t), filepath.FromSlash(dir), "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("found no files of %s: %v", dir, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for name, found := range exposed(f) {
				if dir == "engine" && ofCommands[name] {
					used[name] = true
					continue
				}
				t.Errorf("%s: %s exposes %s", dir, name, found)
			}
		}
	}
	for name := range ofCommands {
		if !used[name] {
			t.Errorf("%s names no internal package: it is for embedders", name)
		}
	}
}

// exposed are the exported names of a file whose declaration, as other packages see it, names an internal package.
func exposed(f *ast.File) map[string]string {
	internal := map[string]string{}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if strings.Contains("/"+path+"/", "/internal/") {
			internal[path[strings.LastIndex(path, "/")+1:]] = path
		}
	}
	found := map[string]string{}
	look := func(name string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructType: // of its fields only the exported ones
				var kept []*ast.Field
				for _, field := range n.Fields.List {
					if len(field.Names) == 0 || field.Names[0].IsExported() {
						kept = append(kept, field)
					}
				}
				n.Fields.List = kept
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && internal[x.Name] != "" {
					found[name] = internal[x.Name] + "." + n.Sel.Name
				}
			}
			return true
		})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				look(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						look(s.Name.Name, s.Type)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && s.Type != nil {
						look(s.Names[0].Name, s.Type)
					}
				}
			}
		}
	}
	return found
}

func receiver(d *ast.FuncDecl) string {
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, _ := of.(*ast.Ident)
	return name.Name
}

// Options hold what embedders use, and nothing that is not exported.
func TestOptionsFields(t *testing.T) {
	for _, of := range []struct {
		kind reflect.Type
		most int
	}{{reflect.TypeFor[engine.Options](), 14}, {reflect.TypeFor[engine.Tuning](), 15}, {reflect.TypeFor[engine.Layout](), 15}} {
		if n := of.kind.NumField(); n > of.most {
			t.Errorf("%v has %d fields, wanted at most %d", of.kind, n, of.most)
		}
		for i := range of.kind.NumField() {
			if f := of.kind.Field(i); !f.IsExported() {
				t.Errorf("%v.%s is not exported", of.kind, f.Name)
			}
		}
	}
}
