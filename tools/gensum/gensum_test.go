package gensum

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gen.sum")
	if sums, err := Read(path); err != nil || len(sums) != 0 {
		t.Fatalf("no file: %v, %v", sums, err)
	}
	want := map[string]Sum{"b": {Hash([]byte("x")), Hash()}, "a": {Hash(nil), Hash(nil, nil)}}
	if err := Write(path, want); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || !maps.Equal(got, want) {
		t.Errorf("found %v, %v; want %v", got, err, want)
	}
	for text, why := range map[string]string{"a b\n": "2 fields", "a b c\n\n": "0 fields", "a b c\na d e\n": "again"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want an error with %q", text, err, why)
		}
	}
}

func TestHashKnowsBorders(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"1\na"}} {
		var bytes [][]byte
		for _, p := range parts {
			bytes = append(bytes, []byte(p))
		}
		if h := Hash(bytes...); seen[h] {
			t.Errorf("%q has the hash of another list", parts)
		} else {
			seen[h] = true
		}
	}
}
