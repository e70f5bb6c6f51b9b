package probe

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// Case is one kind of call, to be timed.
type Case struct {
	Name  string
	Layer string       // the column of the table
	Calls int          // in a round
	Start func() error // before each round, untimed: a fresh command buffer
	Run   func(n int)  // n calls
	Stop  func() error // after each round, untimed
}

// Cost is what one call costs.
type Cost struct {
	Name, Layer             string
	NsPerCall               float64 // median of the rounds
	AllocsPerCall, GoBytes  float64 // on Go's heap
	Rounds, CallsInOneRound int
}

const rounds = 101

// Measure times a case. The collector runs between the rounds only: goki's and
// vulkan-go's calls do not survive it (see Crash), so its work is in no number.
func Measure(c Case) (Cost, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	cost := Cost{Name: c.Name, Layer: c.Layer, Rounds: rounds, CallsInOneRound: c.Calls}
	var took []float64
	for i := range rounds + 1 {
		collect()
		if err := c.Start(); err != nil {
			return cost, fmt.Errorf("measure %s: start a round: %w", c.Name, err)
		}
		var before, after runtime.MemStats
		if i == 0 { // warms up, and counts
			c.Run(1)
			runtime.ReadMemStats(&before)
		}
		start := time.Now()
		c.Run(c.Calls)
		elapsed := time.Since(start)
		if i == 0 {
			runtime.ReadMemStats(&after)
			cost.AllocsPerCall = float64(after.Mallocs-before.Mallocs) / float64(c.Calls)
			cost.GoBytes = float64(after.TotalAlloc-before.TotalAlloc) / float64(c.Calls)
		} else {
			took = append(took, float64(elapsed.Nanoseconds())/float64(c.Calls))
		}
		if err := c.Stop(); err != nil {
			return cost, fmt.Errorf("measure %s: end a round: %w", c.Name, err)
		}
	}
	slices.Sort(took)
	cost.NsPerCall = took[len(took)/2]
	return cost, nil
}

// collect leaves no garbage, and no finalizer at work, to the next round.
func collect() {
	runtime.GC()
	done := make(chan struct{})
	runtime.AddCleanup(new([16]byte), func(c chan struct{}) { close(c) }, done)
	runtime.GC()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
	time.Sleep(time.Millisecond)
}

// Names of the cases. Calls that take structs have two: structs made for each
// call, and structs that live on.
const (
	Dispatch      = "CmdDispatch"
	PushConstants = "CmdPushConstants, 8 bytes"
	Barrier       = "CmdPipelineBarrier, 1 memory barrier"
	CopyBuffer    = "CmdCopyBuffer, 1 region"
	QueueSubmit   = "QueueSubmit, empty"
	UpdateSets    = "UpdateDescriptorSets, 1 write of 3 buffers"
	Fresh         = ": structs made for the call"
	Reused        = ": structs reused"
)
