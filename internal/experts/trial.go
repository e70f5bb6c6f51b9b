package experts

import (
	"context"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
)

// canSkip tests on the device, and waits for it, whether conditional dispatches work: one with a zero flag must be skipped, one with a nonzero
// flag must run. A device that gets this wrong would compute garbage without an error.
func (c *conditional) canSkip() (bool, error) {
	const untouched, ran = 0x0707070707070707, 1<<32 | 1
	said := c.s.buffer.Mapped()[:trialBytes]
	for i := range said {
		said[i] = 7
	}
	q := c.s.o.Queue
	q.Begin(context.Background(), 1)
	if err := q.Commands.Open(); err != nil {
		return false, err
	}
	if err := c.recordTrial(q.Commands.Buffer()); err != nil {
		return false, err
	}
	if err := q.Commands.Submit(); err != nil {
		return false, err
	}
	if err := q.Compute.Wait(context.Background(), q.Value()); err != nil {
		return false, err
	}
	return le.Uint64(said) == untouched && le.Uint64(said[8:]) == ran, nil
}

// recordTrial records two conditional lookups of expert 1, the first with flag 0 and the second with flag 1. Those that run write to the start of choices.
func (c *conditional) recordTrial(cb *vk.CommandBuffer) error {
	const word, looked, ids, table = 0, 4, 16, 32 // offsets in Scratch.Residents, which has at least 256 bytes
	rec, o := c.s.o.Frame.Rec, &c.s.o
	at := o.Frame.Scratch.Residents.Off
	for i := range int64(2) { // the flag
		var first [256]byte
		le.PutUint32(first[word:], uint32(i))
		le.PutUint32(first[ids:], 1)
		to := o.Scratch.Address + uint64(at)
		le.PutUint64(first[table:], to+looked)
		le.PutUint64(first[table+8:], c.s.buffer.Address+uint64(8*i))
		le.PutUint64(first[table+8*(shaders.ResidentsHead+1):], to)
		rec.Barrier()
		if err := rec.Update(o.Scratch, at, first[:]); err != nil {
			return err
		}
		rec.Barrier()
		cb.ConditionBarrier()
		cb.BeginConditional(o.Scratch, at+word)
		if err := kernels.LookupExperts(rec, shaders.LookupExpertsArgs{Residents: to + table, IDs: to + ids, Count: 1}); err != nil {
			return err
		}
		cb.EndConditional()
	}
	cb.HostBarrier()
	return nil
}
