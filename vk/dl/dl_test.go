package dl

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"leat/vk/dl/dltest"
)

// What the system says of a library goes with the goroutine that asked, whatever thread it is moved to.
func TestReasons(t *testing.T) {
	lib, err := Open(dltest.Build(t, os.DevNull))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range 400 {
				name := fmt.Sprintf("absent-%d-%d", g, i)
				if _, err := Open(name + ".so"); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("open %s.so: %v, want an error that names it", name, err)
				}
				if _, err := Symbol(lib, name); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("find %s: %v, want an error that names it", name, err)
				}
			}
		})
	}
	all.Wait()
}
