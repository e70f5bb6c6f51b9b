// Byc times the probe's calls from C loops, the floor under every binding.
package main

/*
#cgo LDFLAGS: -lvulkan
#include "loops.h"
*/
import "C"

import (
	"leat/vk/bindcmp/probe"
	"leat/vk/bindcmp/rawside"
)

type binding struct{ *rawside.Binding }

func main() {
	probe.Main(func() (probe.Binding, error) {
		b, err := rawside.Open()
		return binding{b}, err
	})
}

func (b binding) Device() string { return b.Name() }

// Cases stand under both names of calls that take structs: C has them on its stack.
func (b binding) Cases() ([]probe.Case, error) {
	t := &C.table{
		device: C.uint64_t(b.Binding.Device), queue: C.uint64_t(b.Queue), commands: C.uint64_t(b.Commands),
		buffer: C.uint64_t(b.Buffer), layout: C.uint64_t(b.Layout), set: C.uint64_t(b.Set),
	}
	C.fill_table(t)
	nothing := func() error { return nil }
	var cases []probe.Case
	add := func(name string, calls int, start, stop func() error, loop func(n C.int)) {
		cases = append(cases, probe.Case{Name: name, Layer: "C loop", Calls: calls, Start: start, Stop: stop, Run: func(n int) { loop(C.int(n)) }})
	}
	add(probe.Dispatch, 512, b.Begin, b.End, func(n C.int) { C.loop_dispatch(t, n) })
	add(probe.PushConstants, 512, b.Begin, b.End, func(n C.int) { C.loop_push(t, n) })
	for _, how := range []string{probe.Fresh, probe.Reused} {
		add(probe.Barrier+how, 512, b.Begin, b.End, func(n C.int) { C.loop_barrier(t, n) })
		add(probe.CopyBuffer+how, 512, b.Begin, b.End, func(n C.int) { C.loop_copy(t, n) })
		add(probe.QueueSubmit+how, 128, nothing, b.Idle, func(n C.int) { C.loop_submit(t, n) })
		add(probe.UpdateSets+how, 512, nothing, nothing, func(n C.int) { C.loop_update(t, n) })
	}
	return cases, nil
}
