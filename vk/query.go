package vk

import (
	"fmt"
	"time"

	"leat/vk/internal/raw"
)

// QueryPool holds timestamps written by the device.
type QueryPool struct {
	Count  int
	dev    *Device
	handle raw.QueryPool
	bits   int // of the queue that last wrote here
}

// NewQueryPool makes room for n timestamps. Each must be reset before it is written.
func (d *Device) NewQueryPool(n int) (*QueryPool, error) {
	if n <= 0 {
		return nil, fmt.Errorf("make a query pool of %d timestamps: want at least one", n)
	}
	q := &QueryPool{Count: n, dev: d, bits: d.Compute.TimestampBits}
	info := &raw.QueryPoolCreateInfo{
		SType:      raw.StructureTypeQueryPoolCreateInfo,
		QueryType:  raw.QueryTypeTimestamp,
		QueryCount: uint32(n),
	}
	if err := d.call("vkCreateQueryPool", "", func() Result { return d.fn.CreateQueryPool(d.handle, info, nil, &q.handle) }); err != nil {
		return nil, err
	}
	d.adopt(q)
	return q, nil
}

// Read gives len(dst) timestamps from first on, in ticks; ErrNotReady if one
// has not been written yet.
func (q *QueryPool) Read(first int, dst []uint64) error {
	if first < 0 || first+len(dst) > q.Count {
		return fmt.Errorf("read timestamps %d to %d of %d", first, first+len(dst), q.Count)
	}
	if len(dst) == 0 {
		return nil
	}
	const word = 8
	r := raw.Result(0)
	err := q.dev.call("vkGetQueryPoolResults", "", func() Result {
		r = q.dev.fn.GetQueryPoolResults(q.dev.handle, q.handle, uint32(first), uint32(len(dst)),
			uintptr(word*len(dst)), raw.Ptr(&dst[0]), word, raw.QueryResult64Bit)
		return r
	})
	if r == raw.NotReady {
		return &CallError{Call: "vkGetQueryPoolResults", Result: r}
	}
	return err
}

// Duration is the time from one timestamp to a later one, of the same queue.
// It sees through one overflow of the counter.
func (q *QueryPool) Duration(from, to uint64) time.Duration {
	ticks := to - from
	if q.bits > 0 && q.bits < 64 {
		ticks &= 1<<q.bits - 1
	}
	return time.Duration(float64(ticks) * q.dev.Physical.Limits.TimestampPeriod)
}

// Close frees the pool. No submission that writes to it may be running.
func (q *QueryPool) Close() { q.dev.release(q) }

func (q *QueryPool) label() string { return fmt.Sprintf("a query pool of %d timestamps", q.Count) }

func (q *QueryPool) destroy() { q.dev.fn.DestroyQueryPool(q.dev.handle, q.handle, nil) }

// ResetQueries resets n timestamps of q from first on; only on a queue that computes.
func (c *CommandBuffer) ResetQueries(q *QueryPool, first, n int) {
	if !c.ok() {
		return
	}
	if !c.queue.compute {
		c.fail("reset timestamps on the %s queue: its family only transfers", c.queue.name)
		return
	}
	if first < 0 || n < 1 || first+n > q.Count {
		c.fail("reset timestamps %d to %d of %d", first, first+n, q.Count)
		return
	}
	c.fn.CmdResetQueryPool(c.handle, q.handle, uint32(first), uint32(n))
}

// Reset resets n timestamps from first on from the host, for queues that cannot. The
// device must be done with them.
func (q *QueryPool) Reset(first, n int) error {
	if !q.dev.Features.HostQueryReset {
		return fmt.Errorf("reset timestamps from the host: the device lacks hostQueryReset")
	}
	if first < 0 || n < 1 || first+n > q.Count {
		return fmt.Errorf("reset timestamps %d to %d of %d", first, first+n, q.Count)
	}
	q.dev.fn.ResetQueryPool(q.dev.handle, q.handle, uint32(first), uint32(n))
	return nil
}

// WriteTimestamp writes the time at which all commands before it are done.
func (c *CommandBuffer) WriteTimestamp(q *QueryPool, i int) {
	switch {
	case !c.ok():
	case c.queue.TimestampBits == 0:
		c.fail("write a timestamp: the %s queue has none", c.queue.name)
	case i < 0 || i >= q.Count:
		c.fail("write timestamp %d of %d", i, q.Count)
	default:
		q.bits = c.queue.TimestampBits
		c.fn.CmdWriteTimestamp(c.handle, raw.PipelineStageBottomOfPipeBit, q.handle, uint32(i))
	}
}
