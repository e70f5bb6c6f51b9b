package main

import (
	"os"
	"path/filepath"
	"testing"

	"leat/tools/testdata"
)

// docs/kernels.md has the table as the tool writes it.
func TestCurrent(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(testdata.Root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := renew(doc); err != nil || string(want) != string(doc) {
		t.Errorf("%v; the table in %s is not the rules': go run ./tools/kerneltable", err, file)
	}
	if _, err := renew([]byte("no marks")); err == nil {
		t.Error("a page without marks is renewed")
	}
}
