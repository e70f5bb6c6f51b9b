package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/tools/synth/synthetic"
)

func TestDisk(t *testing.T) {
	defer func(d time.Duration) { sweepTime = d }(sweepTime)
	sweepTime = time.Millisecond
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, synthetic.Options{Arch: "llama"}); err != nil {
		t.Fatal(err)
	}
	var out, errw bytes.Buffer
	if code := run(t.Context(), []string{"-disk", path}, &out, &errw); code != 0 {
		t.Fatalf("exit status %d: %s", code, errw.String())
	}
	if n := strings.Count(out.String(), "disk: depth"); n != 12 || !strings.Contains(out.String(), "disk: best") {
		t.Errorf("%d points, wanted 12 and the best:\n%s", n, out.String())
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "want -link, or -disk and a MODEL"},
		{"-disk", 2, "a MODEL"},
		{"-link a b", 2, "want -link"},
		{"-h", 0, "Example:"},
		{"-disk nowhere.gguf", 1, "nowhere.gguf"},
	} {
		var out, errw bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &out, &errw); code != c.code || !strings.Contains(errw.String(), c.want) {
			t.Errorf("%q: exit status %d, %q; wanted %d and %q", c.args, code, errw.String(), c.code, c.want)
		}
	}
}
