package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"leat/shaders"
	"leat/tools/testdata"
)

// listed are the packages of a suite, in a part or without.
func (s *suite) listed() map[string]bool {
	all := map[string]bool{}
	for _, p := range s.parts {
		for _, name := range p.packages {
			all[name] = true
		}
	}
	for name := range s.without {
		all[name] = true
	}
	return all
}

// A list names what is there, each test once, with a reason.
func TestListsNameTests(t *testing.T) {
	root := testdata.Root(t)
	for name, s := range suites {
		for _, p := range s.parts {
			there := map[string]bool{}
			for _, pkg := range p.packages {
				for _, test := range testsOf(t, filepath.Join(root, pkg)) {
					there[test] = true
				}
			}
			lists := append(slices.Clone(p.left), left{"no reason is needed", nil})
			if p.only != nil {
				lists = append(lists, left{p.why, p.only})
			}
			for _, l := range lists {
				if l.why == "" {
					t.Errorf("%s: no reason for %v", name, l.tests)
				}
				for _, test := range l.tests {
					if !there[test] {
						t.Errorf("%s names %s twice, or there is no such test in %v", name, test, p.packages)
					}
					delete(there, test)
				}
			}
			if len(there) == 0 {
				t.Errorf("%s: nothing is left of %v", name, p.packages)
			}
		}
		for pkg := range s.without {
			if len(testsOf(t, filepath.Join(root, pkg))) == 0 {
				t.Errorf("%s leaves out %s, which has no tests", name, pkg)
			}
		}
	}
}

// testsOf are the names of the tests in a folder.
func testsOf(t *testing.T, dir string) (tests []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w*)\(t \*testing\.T\)`).FindAllSubmatch(text, -1) {
			tests = append(tests, string(m[1]))
		}
	}
	return tests
}

// Every package whose tests link the Vulkan layer is under the layers, or is left out for a reason.
func TestLayersKnowEveryDevicePackage(t *testing.T) {
	cmd := exec.Command("go", "list", "-test", "-f", `{{.ImportPath}} {{join .Deps " "}} `, "./...")
	cmd.Dir = testdata.Root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	listed, found := layers.listed(), 0
	for line := range strings.Lines(string(out)) {
		pkg, deps, _ := strings.Cut(line, " ")
		pkg, isTest := strings.CutSuffix(pkg, ".test")
		if !isTest || !strings.Contains(" "+deps, " leat/vk ") {
			continue
		}
		found++
		if pkg = strings.TrimPrefix(pkg, "leat/"); !listed[pkg] {
			t.Errorf("the tests of %s link leat/vk: name it in layers of tools/suites/lists.go, in a part or without", pkg)
		}
	}
	if found < 10 {
		t.Errorf("found only %d packages whose tests link leat/vk", found)
	}
}

// Every package of the product that starts goroutines or holds locks, and has tests, is under the race detector, or is left out for a reason.
func TestRaceKnowsEverySharingPackage(t *testing.T) {
	root := testdata.Root(t)
	listed, found := race.listed(), 0
	for _, top := range []string{"vk", "shaders", "engine", "decompose", "gguf", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(dir string, entry os.DirEntry, err error) error {
			if err != nil || !entry.IsDir() || entry.Name() == "testdata" {
				return err
			}
			why := shares(t, dir)
			pkg, err := filepath.Rel(root, dir)
			if pkg = filepath.ToSlash(pkg); err != nil || why == "" || len(testsOf(t, dir)) == 0 {
				return err
			}
			if found++; !listed[pkg] {
				t.Errorf("%s %s: name it in race of tools/suites/lists.go, in a part or without", pkg, why)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if found < 10 {
		t.Errorf("found only %d packages that share", found)
	}
}

// shares says by what goroutines share something in a package; "": by nothing.
func shares(t *testing.T, dir string) (why string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				why = fmt.Sprintf("starts goroutines (%s)", filepath.Base(f))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "sync" && (n.Sel.Name == "Mutex" || n.Sel.Name == "RWMutex" || n.Sel.Name == "WaitGroup") {
					why = fmt.Sprintf("has a sync.%s (%s)", n.Sel.Name, filepath.Base(f))
				}
			}
			return true
		})
	}
	return why
}

// What check and the second driver take a sample of is there: a name that is gone would run nothing.
func TestSamplesAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testdata.Root(t), "build.sh"))
	if err != nil {
		t.Fatal(err)
	}
	sample := func(variable string) []string {
		m := regexp.MustCompile(variable + `='[^']*/\^\(([^)]*)\)\$'`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("build.sh has no %s with a list of names", variable)
		}
		return strings.Split(string(m[1]), "|")
	}
	for _, name := range sample("SAMPLE") {
		if _, ok := shaders.Lookup(name); !ok {
			t.Errorf("there is no kernel %s", name)
		}
	}
	for _, name := range sample("GOLDENS") {
		_, here := os.Stat(filepath.Join(testdata.Dir(t), "models", name+".gguf"))
		_, demo := os.Stat(filepath.Join(testdata.Demo(t), name+".gguf"))
		if here != nil && demo != nil {
			t.Errorf("there is no model %s", name)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		p    part
		want string
	}{
		{part{packages: []string{"vk", "vk/mem"}}, "./vk ./vk/mem"},
		{part{packages: []string{"vk"}, only: []string{"TestB", "TestA"}}, "-run ^(TestA|TestB)$ ./vk"},
		{part{packages: []string{"vk"}, left: []left{{"", []string{"TestB"}}, {"", []string{"TestA"}}}}, "-skip ^(TestA|TestB)$ ./vk"},
	} {
		if got := strings.Join(c.p.arguments(), " "); got != c.want {
			t.Errorf("found %q, want %q", got, c.want)
		}
	}
	for _, args := range [][]string{nil, {"all"}, {"race", "layers"}} {
		if err := run(os.Stdout, args); err == nil {
			t.Errorf("arguments %q: no error", args)
		}
	}
}
