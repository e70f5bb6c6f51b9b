package output

import (
	"os"
	"sync"
)

// unfinished are the temporary files of this process.
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

// Abandon removes what is half-written. It is for a process that ends at once; files being written are lost.
func Abandon() {
	unfinished.mu.Lock()
	defer unfinished.mu.Unlock()
	for name := range unfinished.names {
		os.Remove(name)
	}
	unfinished.names = nil
}
