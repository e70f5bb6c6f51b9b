package await_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/tools/testdata"
)

// guesses are calls by which a test guesses when something will have happened.
var guesses = []string{
	"time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick",
	"context.WithTimeout", "context.WithDeadline", "context.WithTimeoutCause", "context.WithDeadlineCause",
}

// units are what durations are written in.
var units = []string{"time.Nanosecond", "time.Microsecond", "time.Millisecond", "time.Second", "time.Minute", "time.Hour"}

// virtual are files whose clock is testing/synctest's: sleeping takes no time there, and is exact.
var virtual = []string{"internal/pace/pacer_test.go"}

// TestNoGuesses: a test waits for a state. It sleeps for no time, sets itself no short deadline and holds no measured time
// against a constant; a machine that is busy would fail it.
func TestNoGuesses(t *testing.T) {
	root := testdata.Root(t)
	seen := 0
	for _, name := range testdata.Files(t) {
		script := strings.HasSuffix(name, ".txtar")
		if !script && !strings.HasSuffix(name, "_test.go") || slices.Contains(virtual, name) {
			continue
		}
		seen++
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		find := guessesIn
		if script {
			find = sleepsIn
		}
		for _, found := range find(t, name, source) {
			t.Error(found)
		}
	}
	if seen < 100 {
		t.Errorf("looked at %d files only", seen)
	}
}

// sleepsIn finds the lines of a script that sleep.
func sleepsIn(_ *testing.T, name string, source []byte) (found []string) {
	for n, line := range strings.Split(string(source), "\n") {
		if slices.Contains(strings.Fields(line), "sleep") {
			found = append(found, fmt.Sprintf("%s:%d: a script that sleeps: %s", name, n+1, line))
		}
	}
	return found
}

func guessesIn(t *testing.T, name string, source []byte) (found []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	say := func(at token.Pos, what string) {
		found = append(found, fmt.Sprintf("%s: %s: wait for a state instead (see leat/tools/await)", set.Position(at), what))
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && strings.HasPrefix(f.Name.Name, "Benchmark") {
			continue // it measures
		}
		measured := measuredIn(decl)
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if name := selector(n); slices.Contains(guesses, name) {
					say(n.Pos(), name)
				}
			case *ast.BinaryExpr:
				if compares(n.Op) && (real(n.X, measured) && fixed(n.Y) || real(n.Y, measured) && fixed(n.X)) {
					say(n.Pos(), "a measured time is held against a constant one")
				}
			}
			return true
		})
	}
	return found
}

func compares(op token.Token) bool {
	return op == token.LSS || op == token.LEQ || op == token.GTR || op == token.GEQ
}

// selector is "time.Sleep" of such an expression, "" of others.
func selector(n *ast.SelectorExpr) string {
	if x, ok := n.X.(*ast.Ident); ok {
		return x.Name + "." + n.Sel.Name
	}
	return ""
}

// measuredIn names the variables of a declaration that time.Since is assigned to.
func measuredIn(decl ast.Decl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i, to := range a.Lhs {
				if id, ok := to.(*ast.Ident); ok && real(a.Rhs[i], nil) {
					names[id.Name] = true
				}
			}
		}
		return true
	})
	return names
}

// real reports whether an expression holds a time that was measured.
func real(e ast.Expr, measured map[string]bool) (yes bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			yes = yes || selector(n) == "time.Since"
		case *ast.Ident:
			yes = yes || measured[n.Name]
		}
		return true
	})
	return yes
}

// fixed reports whether an expression is a duration of a constant length.
func fixed(e ast.Expr) (yes bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			yes = yes || slices.Contains(units, selector(s))
		}
		return true
	})
	return yes
}

// What the rule finds, and what it lets pass.
func TestGuessesIn(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       int
	}{
		{"a sleep", "time.Sleep(time.Millisecond)", 1},
		{"a deadline", "ctx, cancel := context.WithTimeout(t.Context(), time.Second)", 1},
		{"a channel of time", "select {\ncase <-c:\ncase <-time.After(time.Second):\n}", 1},
		{"a kill at a moment", "time.AfterFunc(d, kill)", 1},
		{"a bound", "if time.Since(begin) > 5*time.Second {\n}", 1},
		{"a bound of a variable", "took := time.Since(begin)\nif 5*time.Second < took {\n}", 1},
		{"a bound within others", "if ok || time.Since(begin) > 5*time.Second && !ok {\n}", 1},
		{"a time of the test's own", "if s.Stalled > 5*time.Second {\n}", 0},
		{"two measured times", "took := time.Since(begin)\nif busy > took {\n}", 0},
		{"a time in data", "old := time.Now().Add(-time.Hour)", 0},
	} {
		source := "package p\nfunc TestX(t *testing.T) {\n" + c.body + "\n}\nfunc BenchmarkX(b *testing.B) { time.Sleep(1) }\n"
		if found := guessesIn(t, "p_test.go", []byte(source)); len(found) != c.want {
			t.Errorf("%s: found %q, wanted %d", c.name, found, c.want)
		}
	}
}
