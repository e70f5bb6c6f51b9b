package raw

import (
	"os"
	"os/exec"
	"testing"
)

// compile runs gcc on a C file of a test. Without gcc, or without the Vulkan
// headers, the test is skipped; with LEAT_REQUIRE_TOOLS=1 it fails.
func compile(t testing.TB, src string, args ...string) {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("LEAT_REQUIRE_TOOLS") == "1" {
		missing = t.Fatalf
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		missing("no gcc to compare with C: %v", err)
	}
	probe := exec.Command("gcc", "-fsyntax-only", "-include", "vulkan/vulkan.h", "-x", "c", os.DevNull)
	if out, err := probe.CombinedOutput(); err != nil {
		missing("no Vulkan headers to compare with C (Debian: libvulkan-dev): %v\n%s", err, out)
	}
	cmd := exec.Command("gcc", append([]string{"-O0", "-w", src}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%.2000s", src, err, out)
	}
}
