package jinja

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestLanguage holds snippets of the language against what Jinja2 made of them, null where it fails; see
// testdata/oracle.py.
func TestLanguage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "language.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases [][2]*string
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		got, err := render(t, *c[0], nil)
		switch {
		case c[1] == nil && err == nil:
			t.Errorf("%s\n   got %q, wanted an error", *c[0], got)
		case c[1] != nil && (err != nil || got != *c[1]):
			t.Errorf("%s\n   got %q, error %v\nwanted %q", *c[0], got, err, *c[1])
		}
	}
}

// An integer beyond 64 bits, as a tool's schema may have for a limit, shows as it stands; whoever computes with it is told.
func TestBigInt(t *testing.T) {
	x, err := FromGo(json.RawMessage(`{"max": 18446744073709551615, "min": -9223372036854775809, "f": 1e20}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]Value{"x": x}
	got, err := render(t, `{{ x | tojson }} {{ x }} {{ x.max is integer }} {{ x.max is number }} {{ x.max == x.max }} {{ {x.max: 1}[x.max] }} {{ x.max is string }}`, data)
	want := `{"max": 18446744073709551615, "min": -9223372036854775809, "f": 1e+20} {'max': 18446744073709551615, 'min': -9223372036854775809, 'f': 1e+20} True True True 1 False`
	if err != nil || got != want {
		t.Errorf("got %q, error %v; wanted %q", got, err, want)
	}
	for _, source := range []string{"{{ x.max + 1 }}", "{{ x.max < 1 }}", "{{ -x.max }}", "{{ '%d' % x.max }}", "{{ x.max | float }}", "{{ x.max | round }}"} {
		if got, err := render(t, source, data); err == nil {
			t.Errorf("%s: got %q, wanted an error", source, got)
		}
	}
}

// Marks that keep a message's text from being a control token show in no escape.
func TestMarks(t *testing.T) {
	got, err := render(t, `{{ [x] }} {{ x | tojson(ensure_ascii=true) }} {{ x | e }} {{ x | urlencode }}`, map[string]Value{"x": "<\uFDD0a\uFDD1b\uFDD2"})
	if want := "['<\uFDD0a\uFDD1b\uFDD2'] \"<\uFDD0a\uFDD1b\uFDD2\" &lt;\uFDD0a\uFDD1b\uFDD2 %3Cab"; err != nil || got != want {
		t.Errorf("got %q, error %v; wanted %q", got, err, want)
	}
}

func render(t testing.TB, source string, data map[string]Value) (string, error) {
	tmpl, err := Parse(source)
	if err != nil {
		return "", err
	}
	return tmpl.Render(t.Context(), data, Options{Now: day})
}
