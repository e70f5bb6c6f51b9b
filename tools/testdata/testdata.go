package testdata

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Dir is the folder that INDEX.md describes: models, logits, blocks, vendor.
func Dir(t testing.TB) string {
	t.Helper()
	return find(t, dir(t))
}

// Demo is the folder of the small trained models.
func Demo(t testing.TB) string {
	t.Helper()
	return find(t, filepath.Join(dir(t), "..", "demo"))
}

func dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("LEAT_TESTDATA")
	if filepath.IsAbs(dir) {
		return dir
	}
	if dir == "" {
		dir = filepath.Join("..", "shared", "testdata")
	}
	return filepath.Join(Root(t), dir)
}

func find(t testing.TB, dir string) string {
	t.Helper()
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return dir
	}
	if os.Getenv("LEAT_REQUIRE_TESTDATA") == "1" {
		t.Fatalf("no test data in %s, and LEAT_REQUIRE_TESTDATA=1", dir)
	}
	t.Skipf("no test data in %s (LEAT_TESTDATA names another folder)", dir)
	return ""
}

// Optional is [Dir] for tests that do without: it returns "" where there is none and LEAT_REQUIRE_TESTDATA does not demand it.
func Optional(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat(dir(t)); err != nil && os.Getenv("LEAT_REQUIRE_TESTDATA") != "1" {
		return ""
	}
	return Dir(t)
}

// Files lists the files of the project, below [Root] and with slashes, for tests of how it is written. It leaves out folders whose names begin
// with a dot.
func Files(t testing.TB) (files []string) {
	t.Helper()
	root := os.DirFS(Root(t))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir():
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Parts is the whole number from 1 on that a variable of the environment holds, or 1 where it isn't set: into how many parts
// tests divide their cases, of which they run one.
func Parts(variable string) int {
	text := os.Getenv(variable)
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("%s: found %q, want a whole number from 1 on", variable, text))
	}
	return n
}

// Root is the module's root: the nearest folder above the test's with a go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}
