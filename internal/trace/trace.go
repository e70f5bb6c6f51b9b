package trace

import (
	"slices"
	"time"
)

// Lane is the part of the machine that a span kept busy.
type Lane string

// The lanes of a model that streams its weights.
const (
	Disk    Lane = "disk"    // a reader waits for the disk
	Link    Lane = "link"    // a transfer queue copies to VRAM
	Compute Lane = "compute" // the device runs kernels
	Host    Lane = "host"    // the CPU records and submits
)

// lanes is the order in which they are shown: the way that weights take.
var lanes = []Lane{Disk, Link, Compute, Host}

// Span is one piece of work of one lane. Those of one lane and track do not overlap.
type Span struct {
	Lane  Lane
	Track int    // reader, transfer queue, or 0
	Name  string // the unit's name, or what the submission holds
	Step  int    // 1-based step it serves; 0: loading

	// Since the recorder's first start, on the host's clock. A span that began before has
	// a negative Begin.
	Begin, End time.Duration
	Bytes      int64 // read, copied, or of the weights that kernels read; 0 on the host
}

// Busy is how long lane worked within [from, to): moments at which several of its
// tracks did count once.
func Busy(spans []Span, lane Lane, from, to time.Duration) (busy time.Duration) {
	var list []Span
	for _, s := range spans {
		if s.Begin, s.End = max(s.Begin, from), min(s.End, to); s.Lane == lane && s.Begin < s.End {
			list = append(list, s)
		}
	}
	sortByBegin(list)
	until := from
	for _, s := range list {
		busy += max(0, s.End-max(s.Begin, until))
		until = max(until, s.End)
	}
	return busy
}

func sortByBegin(spans []Span) {
	slices.SortStableFunc(spans, func(a, b Span) int { return int(min(1, max(-1, a.Begin-b.Begin))) })
}
