package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// testsQuiet is how long self-tests of kernels may take in all before a person is told: on a GPU they take less.
const testsQuiet = time.Second

// selfTests sums up those of kernels on a driver that runs them for the first time, which an answer waits for.
type selfTests struct {
	err        io.Writer
	now        func() time.Time
	mu         sync.Mutex
	tested     int
	took       time.Duration
	said       bool // that they go on
	told       int  // of the tested ones, those whose sum was printed
	toldBefore time.Duration
}

// begin is engine.Options.SelfTest.
func (t *selfTests) begin(string) (over func()) {
	begun := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.took-t.toldBefore >= testsQuiet && !t.said {
		t.said = true
		fmt.Fprintln(t.err, "leat: testing the kernels that this model uses, once on this driver")
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.tested, t.took = t.tested+1, t.took+t.now().Sub(begun)
	}
}

// tell prints what the tests since the last time took, if that was long, or it is asked for.
func (t *selfTests) tell(asked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, took := t.tested-t.told, t.took-t.toldBefore
	if n > 0 && (asked || took >= testsQuiet) {
		fmt.Fprintf(t.err, "leat: the self-tests of %d %s took %.1f s; later runs know their results\n", n, plural(n, "kernel"), took.Seconds())
		t.told, t.toldBefore, t.said = t.tested, t.took, false
	}
}
