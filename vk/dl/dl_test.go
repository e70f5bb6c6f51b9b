package dl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// library builds one that has nothing in it.
func library(t *testing.T) string {
	t.Helper()
	skip := t.Skipf
	if os.Getenv("LEAT_REQUIRE_TOOLS") == "1" {
		skip = t.Fatalf
	}
	if runtime.GOOS != "linux" {
		t.Skip("a library is built on Linux only")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		skip("no gcc to build a library with: %v", err)
	}
	lib := filepath.Join(t.TempDir(), "libnothing.so")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", lib, "-x", "c", os.DevNull).CombinedOutput(); err != nil {
		t.Fatalf("build a library: %v\n%s", err, out)
	}
	return lib
}

// What the system says of a library goes with the goroutine that asked, whatever thread it is moved to.
func TestReasons(t *testing.T) {
	lib, err := Open(library(t))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range 400 {
				name := fmt.Sprintf("absent-%d-%d", g, i)
				if _, err := Open(name + ".so"); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("open %s.so: %v, want an error that names it", name, err)
				}
				if _, err := Symbol(lib, name); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("find %s: %v, want an error that names it", name, err)
				}
			}
		})
	}
	all.Wait()
}
