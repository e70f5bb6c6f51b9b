package testdata

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// fake records how a test would have ended instead of ending it.
type fake struct {
	testing.TB
	skipped, failed string
}

func (f *fake) Helper() {}

func (f *fake) Skipf(format string, args ...any) {
	f.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *fake) Fatalf(format string, args ...any) {
	f.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestFound(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"testdata", "demo"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("LEAT_TESTDATA", filepath.Join(top, "testdata"))
	if got, want := Dir(t), filepath.Join(top, "testdata"); got != want {
		t.Errorf("Dir = %s, want %s", got, want)
	}
	if got, want := Demo(t), filepath.Join(top, "demo"); got != want {
		t.Errorf("Demo = %s, want %s", got, want)
	}
}

func TestAbsent(t *testing.T) {
	t.Setenv("LEAT_TESTDATA", filepath.Join(t.TempDir(), "none"))
	for name, require := range map[string]string{"skips": "", "fails when required": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LEAT_REQUIRE_TESTDATA", require)
			f := &fake{TB: t}
			done := make(chan struct{})
			go func() { defer close(done); Dir(f) }()
			<-done
			if skip := require == ""; (f.skipped != "") != skip || (f.failed != "") == skip {
				t.Errorf("skipped %q, failed %q", f.skipped, f.failed)
			}
		})
	}
}
