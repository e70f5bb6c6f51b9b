package output

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"leat/tools/testdata"
)

// writers are the functions of package os that make, replace or empty a file.
var writers = []string{"Create", "CreateTemp", "WriteFile", "OpenFile", "Rename", "Truncate", "Link", "Symlink", "NewFile", "OpenInRoot", "OpenRoot"}

// callers are the files, beside this package's, that may call them. Folders end in a slash.
var callers = map[string]string{
	"cmd/leat/talks.go":                "makes an empty file with a name of its own, for package output to replace",
	"decompose/partial.go":             "a pack is written in a folder of its own, with a journal, and is taken up again after a kill",
	"internal/calibrate/disk.go":       "a temporary file whose reading is measured",
	"internal/kernels/cache/marker.go": "files that stand for work in progress, held by a lock while it goes on: what counts is that they are there",
	"vk/file/direct_linux.go":          "opens for reading, past the page cache",
	"vk/file/direct_windows.go":        "opens for reading, past the page cache",
	"tools/":                           "programs for who works on leat, in a clone of it",
}

// TestCallers: a command that writes files in a way of its own would lose what this package keeps.
func TestCallers(t *testing.T) {
	root := testdata.Root(t)
	used := map[string]bool{}
	for _, name := range testdata.Files(t) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/output/") {
			continue
		}
		calls, err := callsOf(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if row := rowOf(name); len(calls) > 0 && row != "" {
			used[row] = true
		} else if len(calls) > 0 {
			t.Errorf("%s calls %s: write with package output, or give it a row that says why not", name, strings.Join(calls, ", "))
		}
	}
	for row, why := range callers {
		if !used[row] {
			t.Errorf("the row of %s (%s) is of no use", row, why)
		}
	}
}

// rowOf is the row of callers for a file, or "" if there is none.
func rowOf(name string) string {
	for row := range callers {
		if row == name || strings.HasSuffix(row, "/") && strings.HasPrefix(name, row) {
			return row
		}
	}
	return ""
}

// callsOf lists which of writers a file names, called or not, whatever it calls package os.
func callsOf(path string) (calls []string, err error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	local := ""
	for _, imp := range f.Imports {
		if p, _ := strconv.Unquote(imp.Path.Value); p == "os" {
			if local = "os"; imp.Name != nil {
				local = imp.Name.Name
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && local != "" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == local && slices.Contains(writers, s.Sel.Name) {
				calls = append(calls, "os."+s.Sel.Name)
			}
		}
		return true
	})
	return calls, nil
}
