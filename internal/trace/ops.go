package trace

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Ops sums up what the device's time goes to, kernel by kernel. Its methods are safe for use by
// several goroutines.
type Ops struct {
	mu    sync.Mutex
	steps int
	of    map[opKey]*Op
}

// opKey identifies a kernel by its name and the amount of its work, in powers of two.
type opKey struct {
	name string
	size int // of the work, as a power of two
}

// Op is what one kernel did, in all steps together.
type Op struct {
	Name  string        `json:"name"` // or what the device did between kernels
	Calls int           `json:"calls"`
	Time  time.Duration `json:"ns"`    // from the end of the one before it to its own
	Bytes float64       `json:"bytes"` // of memory that it had to touch, estimated
	Flops float64       `json:"flops"`
}

// Add adds a run of a kernel.
func (o *Ops) Add(name string, bytes, flops float64, d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[opKey]*Op{}
	}
	k := opKey{name, magnitude(bytes)}
	op := o.of[k]
	if op == nil {
		op = &Op{Name: name}
		o.of[k] = op
	}
	op.Calls++
	op.Time += d
	op.Bytes += bytes
	op.Flops += flops
}

// magnitude is how many times x can be halved.
func magnitude(x float64) (n int) {
	for ; x >= 2; x /= 2 {
		n++
	}
	return n
}

// Step counts a step whose kernels were added.
func (o *Ops) Step() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.steps++
}

// Take returns the sums since the last Take, longest first, and of how many steps they are.
func (o *Ops) Take() (ops []Op, steps int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.of {
		ops = append(ops, *op)
	}
	slices.SortFunc(ops, func(a, b Op) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name)) })
	steps = o.steps
	o.of, o.steps = nil, 0
	return ops, steps
}
