package main

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	defer func(v, c string) { version, commit = v, c }(version, commit)
	version, commit = "1.2.3", "abcdef123456"
	stdout, stderr, code := leat(t, "version")
	want := "leat 1.2.3 (abcdef123456) " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	if code != 0 || stderr != "" || stdout != want {
		t.Errorf("exit %d, stderr %q, stdout %q, want %q", code, stderr, stdout, want)
	}

	stdout, _, _ = leat(t, "version", "--json")
	var info versionInfo
	if err := json.Unmarshal([]byte(stdout), &info); err != nil {
		t.Fatal(err)
	}
	if want := (versionInfo{"1.2.3", "abcdef123456", runtime.Version(), runtime.GOOS, runtime.GOARCH}); info != want {
		t.Errorf("JSON has %+v, want %+v", info, want)
	}
}

func TestVersionUnset(t *testing.T) {
	defer func(v, c string) { version, commit = v, c }(version, commit)
	version, commit = "", ""
	if stdout, _, _ := leat(t, "version"); !strings.HasPrefix(stdout, "leat devel ") {
		t.Errorf("printed %q", stdout)
	}
}
