package dltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Build makes a library of a C file and returns its path. Without gcc, or elsewhere than on Linux, the test is skipped; with
// LEAT_REQUIRE_TOOLS=1 it fails for want of gcc.
func Build(t *testing.T, source string) string {
	t.Helper()
	skip := t.Skipf
	if os.Getenv("LEAT_REQUIRE_TOOLS") == "1" {
		skip = t.Fatalf
	}
	if runtime.GOOS != "linux" {
		t.Skip("libraries are built on Linux only")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		skip("no gcc to build a library with: %v", err)
	}
	lib := filepath.Join(t.TempDir(), "libtest.so")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", lib, "-x", "c", source).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, out)
	}
	return lib
}
