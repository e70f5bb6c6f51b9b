package weights

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"leat/decompose"
)

// stripedModel is a pack over two folders, and the second one.
func stripedModel(t *testing.T) (path, second string) {
	t.Helper()
	dir := t.TempDir()
	path, second = filepath.Join(dir, "a", "pack"), filepath.Join(dir, "b", "pack")
	o := decompose.Options{Stripe: []string{second}, StripeBytes: 16 << 10}
	if _, err := decompose.Run(t.Context(), model(t), path, o); err != nil {
		t.Fatal(err)
	}
	return path, second
}

// TestStripedBytes: units of a striped pack arrive as those of a plain one do.
func TestStripedBytes(t *testing.T) {
	path, _ := stripedModel(t)
	for _, c := range []setup{{host: 1}, {extra: 1 << 20, host: 3 << 20, lanes: 2}, {extra: 64 << 20, host: 1}} {
		r := newRig(t, path, c)
		for k := range 4 {
			r.ok(r.step(k%2 == 0, true))
		}
	}
}

// TestStripedBoth: while reads of one drive hang, so do some of the other: both are busy
// at once.
func TestStripedBoth(t *testing.T) {
	path, second := stripedModel(t)
	var mu sync.Mutex
	busy := map[bool]int{}
	both, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r := newRig(t, path, setup{host: 1, fault: func(at string, _, _ int64) error {
		mu.Lock()
		busy[strings.HasPrefix(at, second)]++
		if busy[true] >= 1 && busy[false] >= 1 {
			once.Do(func() { close(both) })
		}
		mu.Unlock()
		<-gate // nothing is answered until both drives have reads in flight
		return nil
	}})
	<-both
	close(gate)
	r.ok(r.step(true, true))
}
