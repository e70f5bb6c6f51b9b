package jinja

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestLanguage holds snippets of the language against what Jinja2 made of them; see
// testdata/oracle.py.
func TestLanguage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "language.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases [][2]string
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		got, err := render(t, c[0], nil)
		if err != nil || got != c[1] {
			t.Errorf("%s\n   got %q, error %v\nwanted %q", c[0], got, err, c[1])
		}
	}
}

func render(t testing.TB, source string, data map[string]Value) (string, error) {
	tmpl, err := Parse(source)
	if err != nil {
		return "", err
	}
	return tmpl.Render(t.Context(), data, Options{Now: day})
}
