package main

import (
	"fmt"
	"io"
	"time"

	"leat/internal/bench"
)

// printOps lists the kernels of a row's steps, the ones that matter.
func printOps(w io.Writer, r *bench.Row) {
	if r.Ops == nil || r.Ops.Steps == 0 {
		return
	}
	steps := float64(r.Ops.Steps)
	var all, rest time.Duration
	for i := range r.Ops.Of {
		all += r.Ops.Of[i].Time
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()*1000/steps) }
	fmt.Fprintf(w, "\n%s: the GPU's %s ms of a step, mean of %d\n%-38s %8s %10s %9s %6s %10s %8s\n", r.Test, ms(all), r.Ops.Steps, "kernel", "calls", "us each", "ms", "share", "GB/s", "TFLOP/s")
	for i := range r.Ops.Of {
		o := &r.Ops.Of[i]
		share := o.Time.Seconds() / all.Seconds()
		if share < 0.002 {
			rest += o.Time
			continue
		}
		rate := func(amount, unit float64) string {
			if amount == 0 || o.Time == 0 {
				return ""
			}
			return fmt.Sprintf("%.4g", amount/o.Time.Seconds()/unit)
		}
		fmt.Fprintf(w, "%-38s %8.1f %10.1f %9s %6s %10s %8s\n", o.Name, float64(o.Calls)/steps, o.Time.Seconds()*1e6/float64(o.Calls), ms(o.Time), fmt.Sprintf("%.1f%%", 100*share), rate(o.Bytes, 1e9), rate(o.Flops, 1e12))
	}
	if rest > 0 {
		fmt.Fprintf(w, "%-38s %8s %10s %9s\n", "all others", "", "", ms(rest))
	}
}
