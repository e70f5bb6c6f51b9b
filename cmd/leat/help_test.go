package main

import (
	"bytes"
	"strings"
	"testing"
)

// Plain help shows the flags that people use and says how to see the others; --help-advanced shows all, with or without a model.
func TestHelpAdvanced(t *testing.T) {
	help := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := newApp(strings.NewReader(""), &out, &errs).run(t.Context(), args); code != 0 || errs.Len() > 0 {
			t.Fatalf("%v: exit status %d, %s", args, code, &errs)
		}
		return out.String()
	}
	plain, all := help("run", "--help"), help("run", "--help-advanced")
	if other := help("run", "demo", "--help-advanced"); other != all {
		t.Errorf("with a model --help-advanced says something else:\n%s", other)
	}
	root := newRootCmd(newApp(nil, nil, nil))
	c, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	hidden := 0
	for _, f := range flagsOf(c) {
		line := "--" + f.Name + " "
		if !strings.Contains(all, line) {
			t.Errorf("--help-advanced lacks %s", line)
		}
		if strings.Contains(plain, line) == isAdvanced(f) {
			t.Errorf("--help and %s: it is advanced: %v", line, isAdvanced(f))
		}
		if isAdvanced(f) {
			hidden++
		}
	}
	if hidden < 10 || !strings.Contains(plain, "--help-advanced") {
		t.Errorf("--help leaves out %d flags:\n%s", hidden, plain)
	}
}
