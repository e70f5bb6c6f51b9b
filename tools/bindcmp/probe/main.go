package probe

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// Binding is a way to call Vulkan.
type Binding interface {
	Device() string              // its name
	Dispatch() ([]uint32, error) // one run of the kernel, the floats' bits
	Cases() ([]Case, error)
	// CreatePipeline makes a compute pipeline from structs made for the call, and destroys it.
	CreatePipeline() error
	// UpdateSet puts the buffers into the descriptor set with a struct that was
	// passed before; then with a new one, which takes memory that was freed too early.
	UpdateSet() error
	Close()
}

// Report is what a binding's program prints, as JSON.
type Report struct {
	Device string
	Output []uint32
	Costs  []Cost
}

// Main is the program of one binding.
func Main(open func() (Binding, error)) {
	crash := flag.Duration("crash", 0, "make pipelines while the garbage collector runs, for so long")
	dispatch := flag.Bool("dispatch", false, "time nothing")
	reuse := flag.Bool("reuse", false, "with -crash: pass a kept struct, collecting between the calls")
	flag.Parse()
	if err := run(open, *crash, *reuse, *dispatch); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(open func() (Binding, error), crash time.Duration, reuse, dispatchOnly bool) error {
	b, err := open()
	if err != nil {
		return err
	}
	defer b.Close()
	if crash > 0 && reuse {
		return repeat(crash, func() error {
			runtime.GC()
			return b.UpdateSet()
		})
	}
	if crash > 0 {
		return Crash(b, crash)
	}
	report := Report{Device: b.Device()}
	if report.Output, err = b.Dispatch(); err != nil {
		return err
	}
	if !dispatchOnly {
		cases, err := b.Cases()
		if err != nil {
			return err
		}
		for _, c := range cases {
			cost, err := Measure(c)
			if err != nil {
				return err
			}
			report.Costs = append(report.Costs, cost)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// Crash makes pipelines with the collector running all the while. A binding
// that frees what a call still reads ends the process here.
func Crash(b Binding, d time.Duration) error {
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for !stop.Load() {
			runtime.GC()
		}
	}()
	return repeat(d, b.CreatePipeline)
}

// repeat counts aloud, for whoever finds the process dead.
func repeat(d time.Duration, call func() error) error {
	n := 0
	defer func() { fmt.Fprintf(os.Stderr, "calls survived: %d\n", n) }()
	for start := time.Now(); time.Since(start) < d; n++ {
		if n < 10 || n%100 == 0 {
			fmt.Fprintf(os.Stderr, "calls survived: %d\n", n)
		}
		if err := call(); err != nil {
			return fmt.Errorf("call %d: %w", n, err)
		}
	}
	return nil
}
