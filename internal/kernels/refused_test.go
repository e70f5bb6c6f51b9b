package kernels

import (
	"errors"
	"testing"

	"leat/vk/vktest"
)

// A kernel that failed its test costs a step nothing but a look: it is asked for in each of them.
func TestRefusedAtOnce(t *testing.T) {
	tests := 0
	k, err := New(vktest.Open(t), Options{Test: func(*Kernels, Variant) error { tests++; return errors.New("wrong") }})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	r := k.Recorder(nil)
	ask := func() {
		if r.usable(choice{op: "quantize_q8"}) {
			t.Fatal("what failed its test is used")
		}
	}
	ask()
	if allocs := testing.AllocsPerRun(100, ask); allocs > 1 || tests != 1 { // 1: the target of errors.As
		t.Errorf("%v allocations each time, tested %d times; want it remembered", allocs, tests)
	}
}
