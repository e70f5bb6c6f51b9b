package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Many at once lose nothing of each other's.
func TestUpdateTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "state")
	const many = 20
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if err := UpdateState(path, 1024, func(old []byte) ([]byte, error) { return fmt.Appendf(old, "<%d>", i), nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := ReadState(path, 1024)
	if err != nil {
		t.Fatal(err)
	}
	for i := range many {
		if !strings.Contains(string(got), fmt.Sprintf("<%d>", i)) {
			t.Errorf("%d is lost: %s", i, got)
		}
	}
}

// What is no state of ours is as if it were not there, and is replaced.
func TestReadState(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	for name, data := range map[string]string{"longer": "longer than that", "empty": ""} {
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadState(path, 4); len(got) != 0 || (err == nil) != (data == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := UpdateState(path, 4, func(old []byte) ([]byte, error) { return append(old, "new"...), nil }); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadState(path, 4); string(got) != "new" || err != nil {
			t.Errorf("%s: then %q, %v", name, got, err)
		}
	}
	if got, err := ReadState(dir, 4); got != nil || err == nil {
		t.Errorf("of a folder: %q, %v", got, err)
	}
	if got, err := ReadState(filepath.Join(dir, "none"), 4); got != nil || err != nil {
		t.Errorf("of nothing: %q, %v", got, err)
	}
}
