package engine_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"leat/tools/testdata"
)

// allowed is the plan of the house: each package, and what of ours it may import. Imports
// only go down. Tests and tools may look anywhere, so tools have no row.
var allowed = map[string][]string{
	"cmd/leat": {"cmd/leat/demo", "cmd/leat/picture", "engine", "engine/chat", "engine/sample", "engine/token", "server", "train", "decompose", "decompose/pack", "gguf",
		"internal/arch", "internal/bench", "internal/budget", "internal/calibrate", "internal/kernels", "internal/kernels/cache", "internal/output", "internal/pace", "internal/plan", "internal/predict", "internal/predict/gpus", "internal/predict/training", "internal/record", "internal/trace",
		"internal/selftest", "shaders", "vk", "vk/mem"}, // doctor looks below the engine
	"cmd/leat/demo":    {"internal/output"},
	"cmd/leat/picture": {},

	// Public: for embedders.
	"server": {"engine", "engine/chat", "engine/sample", "engine/token"},
	"train":  {"engine", "engine/token", "internal/arch", "internal/plan", "internal/step", "internal/weights"},
	"engine": {"engine/chat", "engine/sample", "engine/token", "decompose/pack", "gguf",
		"internal/adapt", "internal/arch", "internal/budget", "internal/expertcache", "internal/kernels", "internal/kernels/cache", "internal/kv", "internal/pace", "internal/plan", "internal/predict",
		"internal/sched", "internal/selftest", "internal/step", "internal/trace", "internal/weights", "shaders", "vk", "vk/file", "vk/limit", "vk/mem"},
	"engine/token":      {"gguf"},
	"engine/chat":       {"engine/chat/jinja"},
	"engine/chat/jinja": {},
	"engine/sample":     {},

	// One step, and what serves it.
	"internal/sched": {"engine/token", "internal/step", "internal/kv"},
	"internal/step": {"decompose/pack", "gguf", "gguf/quant", "internal/arch", "internal/experts", "internal/kernels", "internal/kv", "internal/pace", "internal/plan", "internal/record", "internal/submit",
		"internal/trace", "internal/weights", "shaders", "vk", "vk/limit", "vk/mem"},
	"internal/experts":     {"decompose/pack", "internal/arch", "internal/kernels", "internal/plan", "internal/record", "internal/submit", "internal/weights", "shaders", "vk", "vk/mem"},
	"internal/record":      {"decompose/pack", "gguf", "internal/arch", "internal/kernels", "internal/plan", "internal/submit", "shaders"},
	"internal/submit":      {"internal/kernels", "internal/pace", "internal/trace", "vk", "vk/limit"},
	"internal/weights":     {"decompose/pack", "internal/expertcache", "internal/plan", "internal/trace", "vk", "vk/file", "vk/limit", "vk/mem", "vk/xfer"},
	"internal/kv":          {"internal/plan", "vk", "vk/mem"},
	"internal/adapt":       {},
	"internal/expertcache": {},
	"internal/pace":        {"internal/pace/nvml"},
	"internal/pace/nvml":   {"vk/dl"},
	"internal/trace":       {},

	// What is known of models and machines.
	"internal/bench":            {"engine", "engine/token", "internal/arch", "internal/expertcache", "internal/pace", "internal/plan", "internal/predict", "internal/trace"},
	"internal/calibrate":        {"decompose/pack", "gguf", "internal/arch", "internal/kernels", "internal/output", "internal/plan", "internal/predict", "internal/selftest", "shaders", "vk", "vk/file", "vk/mem", "vk/xfer"},
	"internal/predict":          {"decompose/pack", "gguf", "internal/arch", "internal/plan", "internal/predict/gpus", "shaders"},
	"internal/predict/gpus":     {},
	"internal/predict/training": {},
	"internal/budget":           {"decompose/pack", "gguf", "internal/arch", "internal/kernels", "internal/plan", "internal/predict/gpus", "vk", "vk/mem"},
	"internal/plan":             {"decompose/pack", "gguf", "internal/arch", "shaders"},
	"internal/arch":             {"decompose/pack", "gguf", "gguf/quant"},
	"internal/output":           {},

	// Files.
	"decompose":      {"decompose/pack", "gguf", "gguf/quant", "internal/output"},
	"decompose/pack": {"gguf"},
	"gguf/quant":     {"gguf"},
	"gguf":           {},

	// Kernels.
	"shaders/conform":        {"gguf", "gguf/quant", "internal/kernels", "internal/selftest", "shaders", "shaders/ref"},
	"internal/selftest":      {"gguf", "gguf/quant", "internal/kernels", "shaders", "shaders/ref", "vk"},
	"internal/kernels":       {"gguf", "internal/kernels/cache", "shaders", "vk"},
	"internal/kernels/cache": {"internal/output"},
	"shaders/ref":            {"gguf", "gguf/quant"},
	"shaders":                {"gguf"},

	// The device.
	"vk/vktest":       {"vk"},
	"vk/xfer":         {"vk", "vk/mem"},
	"vk/mem":          {"vk"},
	"vk/file":         {"vk/limit"},
	"vk/limit":        {},
	"vk":              {"vk/internal/raw"},
	"vk/internal/raw": {"vk/dl"},
	"vk/dl":           {},
	"vk/dl/dltest":    {},
}

var unsafeRooms = []string{"vk/internal/raw", "vk/mem", "vk/file"}

func TestImports(t *testing.T) {
	packages, err := readTree(testdata.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 5 {
		t.Fatalf("found only %d packages", len(packages))
	}
	for _, problem := range check(packages) {
		t.Error(problem)
	}
}

// The table itself goes only down, so that the row of a package not built yet can't be wrong. A package may import what its row names only
// because it does import it.
func TestImportsTable(t *testing.T) {
	packages, err := readTree(testdata.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]*goPackage{}
	for _, p := range packages {
		built[p.path] = p
	}
	for from, row := range allowed {
		for _, to := range row {
			if p := built[from]; p != nil && built[to] != nil && p.imports["leat/"+to] == nil {
				t.Errorf("%s does not import %s: take it out of the row", from, to)
			}
			if _, ok := allowed[to]; !ok {
				t.Errorf("the row of %s names %s, which has no row", from, to)
			}
			if reaches(to, from) {
				t.Errorf("%s may import %s, which may import %s again", from, to, from)
			}
		}
	}
}

func reaches(from, to string) bool {
	return from == to || slices.ContainsFunc(allowed[from], func(next string) bool { return reaches(next, to) })
}

// goPackage is one folder of Go files.
type goPackage struct {
	path    string              // below the module, slashes
	imports map[string][]string // import path -> the files that name it, without tests
	tests   map[string][]string // the same of the tests
	doc     string              // the package comment in doc.go
}

// readTree parses the imports of every package in the module at root, for every system:
// build tags are not looked at.
func readTree(root string) ([]*goPackage, error) {
	var found []*goPackage
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if rel != "." && skipped(dir, rel) {
			return filepath.SkipDir
		}
		pkg, err := readPackage(dir, rel)
		if pkg != nil {
			found = append(found, pkg)
		}
		return err
	})
	return found, err
}

func skipped(dir, rel string) bool {
	if rel == "tools/testdata" {
		return false
	}
	base := path.Base(rel)
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return base == "testdata" || base[0] == '.' || base[0] == '_' || err == nil
}

func readPackage(dir, rel string) (*goPackage, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	pkg := &goPackage{path: rel, imports: map[string][]string{}, tests: map[string][]string{}}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		pkg.add(filepath.Base(file), parsed)
	}
	return pkg, nil
}

func (p *goPackage) add(name string, file *ast.File) {
	if name == "doc.go" {
		p.doc = file.Doc.Text()
	}
	into := p.imports
	if strings.HasSuffix(name, "_test.go") {
		into = p.tests
	}
	for _, spec := range file.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
			into[imported] = append(into[imported], name)
		}
	}
}

// check returns what breaks a rule, one sentence each.
func check(packages []*goPackage) []string {
	var problems []string
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, p := range packages {
		row, known := allowed[p.path]
		tool := strings.HasPrefix(p.path, "tools/")
		if !known && !tool {
			complain("%s is a new package: add it to the table in engine/imports_test.go", p.path)
		}
		for imported, files := range p.imports {
			if ours, ok := strings.CutPrefix(imported, "leat/"); ok && known && !slices.Contains(row, ours) {
				complain("%s must not import %s (%s): the table in engine/imports_test.go", p.path, ours, strings.Join(files, ", "))
			}
			if imported == "C" {
				complain("%s imports C (%s): the product is built without cgo", p.path, strings.Join(files, ", "))
			}
		}
		if files := append(p.imports["unsafe"], p.tests["unsafe"]...); len(files) > 0 && !slices.Contains(unsafeRooms, p.path) {
			complain("%s imports unsafe (%s): only %s may", p.path, strings.Join(files, ", "), strings.Join(unsafeRooms, ", "))
		}
		if new(doc.Package).Synopsis(p.doc) == "" {
			complain("%s has no doc.go with a package comment", p.path)
		}
	}
	slices.Sort(problems)
	return problems
}

// The map names what is there: each path in docs/architecture.md is a file or a folder.
func TestImportsMap(t *testing.T) {
	root := testdata.Root(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("`[A-Za-z0-9_.*-]+(/[A-Za-z0-9_.*-]+)+`").FindAllString(string(page), -1)
	if len(paths) < 50 {
		t.Errorf("found only %d paths", len(paths))
	}
	for _, p := range paths {
		if found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(strings.Trim(p, "`")))); err != nil || len(found) == 0 {
			t.Errorf("docs/architecture.md names %s, which does not exist (%v)", p, err)
		}
	}
	if bare := regexp.MustCompile("`[a-z0-9_]+\\.go`").FindAllString(string(page), -1); len(bare) > 0 {
		t.Errorf("docs/architecture.md names %q without their folder", bare)
	}
}

// The test of the test: each rule, broken once.
func TestImportsCheck(t *testing.T) {
	const good = "// Package x is one idea.\npackage x\n"
	tests := map[string]struct {
		files map[string]string
		want  string // part of the only problem; "": none
	}{
		"a good package":     {map[string]string{"vk/mem/doc.go": good, "vk/mem/a.go": "package x\nimport (\n\"unsafe\"\n\"leat/vk\"\n)"}, ""},
		"an edge upwards":    {map[string]string{"vk/mem/doc.go": good, "vk/mem/a.go": `package x; import "leat/engine"`}, "vk/mem must not import engine (a.go)"},
		"on another system":  {map[string]string{"vk/doc.go": good, "vk/a_windows.go": "//go:build windows\npackage x\nimport \"leat/gguf\""}, "vk must not import gguf (a_windows.go)"},
		"an edge in a test":  {map[string]string{"vk/doc.go": good, "vk/a_test.go": `package x; import "leat/tools/synth"`}, ""},
		"an unknown package": {map[string]string{"util/doc.go": good}, "util is a new package: add it"},
		"a tool":             {map[string]string{"tools/x/doc.go": good, "tools/x/a.go": `package x; import "leat/internal/kv"`}, ""},
		"unsafe":             {map[string]string{"gguf/doc.go": good, "gguf/a.go": `package x; import "unsafe"`}, "gguf imports unsafe (a.go)"},
		"unsafe in a test":   {map[string]string{"gguf/doc.go": good, "gguf/a_test.go": `package x; import "unsafe"`}, "gguf imports unsafe (a_test.go)"},
		"cgo":                {map[string]string{"vk/doc.go": good, "vk/a.go": `package x; import "C"`}, "vk imports C (a.go)"},
		"no doc.go":          {map[string]string{"vk/a.go": good}, "vk has no doc.go"},
		"an empty doc.go":    {map[string]string{"vk/doc.go": "package x"}, "vk has no doc.go"},
		"test data":          {map[string]string{"vk/testdata/a.go": `package x; import "C"`}, ""},
		"another module":     {map[string]string{"tools/y/go.mod": "module y", "tools/y/a.go": `package x; import "C"`}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range tt.files {
				file = filepath.Join(root, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			packages, err := readTree(root)
			if err != nil {
				t.Fatal(err)
			}
			problems := check(packages)
			if tt.want == "" && len(problems) > 0 {
				t.Errorf("problems: %q", problems)
			}
			if tt.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], tt.want)) {
				t.Errorf("problems: %q, want one with %q", problems, tt.want)
			}
		})
	}
}
