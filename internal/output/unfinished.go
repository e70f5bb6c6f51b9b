package output

import (
	"os"
	"sync"
)

// unfinished is the set of temporary files that this process has neither committed nor removed.
var unfinished temporaries

type temporaries struct {
	mu    sync.Mutex
	names map[string]bool
}

func (t *temporaries) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]bool{}
	}
	t.names[name] = true
}

func (t *temporaries) drop(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.names, name)
}

// Abandon removes all temporary files of this process. Call it just before the process exits; the old files stay.
func Abandon() {
	unfinished.mu.Lock()
	defer unfinished.mu.Unlock()
	for name := range unfinished.names {
		os.Remove(name)
	}
	unfinished.names = nil
}
