package experts

import (
	"fmt"

	"leat/internal/plan"
	"leat/internal/record"
)

// This file handles the outcomes of conditional layers: which ones ran, and how the ones that the device skipped, because an expert was missing, are run
// again.

// awaitOutcomes waits for submitted conditional layers, counts the experts that they used, and removes them from layers. Without all it leaves out those of
// the last submission. If a layer was skipped, awaitOutcomes submits it and all layers after it again, a few at a time, until all of them have run.
func (c *conditional) awaitOutcomes(all bool) error {
	if c == nil {
		return nil
	}
	q := c.s.o.Queue
	for len(c.layers) > 0 && c.layers[0].value != 0 {
		value, n := c.layers[0].value, 0
		if more := c.layers[len(c.layers)-1].skipped; more && value == q.Value() { // the device runs the next layers while the host handles these
			if err := c.submitSkipped(); err != nil {
				return err
			}
		} else if !more && !all && value == q.Value() {
			return nil
		}
		if err := q.Host.AwaitPolling(value); err != nil {
			return err
		}
		for n < len(c.layers) && c.layers[n].value == value && c.s.ranConditionally(c.layers[n].Layer.Layer) {
			if err := c.countUsed(&c.layers[n]); err != nil {
				return err
			}
			n++
		}
		c.layers = append(c.layers[:0], c.layers[n:]...)
		if len(c.layers) > 0 && c.layers[0].value == value {
			if err := c.resolveMiss(); err != nil {
				return err
			}
		}
	}
	return nil
}

// countUsed tells the cache's policy and Counters which experts a conditional layer used, once it has run. For that it takes them into the batch
// waves.present and releases the batch. It does nothing if the layer was counted when it was skipped.
func (c *conditional) countUsed(l *conditionalLayer) error {
	if l.counted {
		return nil
	}
	s, x := c.s, c.s.x
	if err := c.takeChosen(l); err != nil {
		return err
	}
	if !s.waves.present.UploadsSubmitted() {
		return fmt.Errorf("layer %d ran conditionally without some of its experts", l.Layer.Layer)
	}
	c.noteMisses(0)
	x.Counters.CountConditional()
	_, err := s.waves.present.Release(l.value, 0)
	return err
}

// takeChosen reads a layer's choice, takes all its experts into the batch waves.present, and starts to fetch the missing ones. It fails if the
// slots can't hold them all.
func (c *conditional) takeChosen(l *conditionalLayer) error {
	s, n := c.s, &c.s.waves.need
	if err := s.countNeed(l.Layer.Layer); err != nil {
		return err
	}
	s.x.Begin(s.o.Queue.Commands.Step(), l.Layer.Layer)
	clear(n.taken)
	n.list()
	took, err := s.waves.present.Take(s.o.Queue.Commands.Context(), l.Layer.Layer, n.ids)
	if err == nil && took != len(n.ids) {
		err = fmt.Errorf("layer %d: slots for %d of the %d experts of one row", l.Layer.Layer, took, len(n.ids))
	}
	return err
}

// resolveMiss is called when the device has skipped the first of layers, and all after it. It waits for the device, uploads the missing experts,
// notes them in the device's table, subtracts the skipped work from the counters, and submits the first skipped layers again, see
// [conditional.submitSkipped].
func (c *conditional) resolveMiss() error {
	s, q, l := c.s, c.s.o.Queue, &c.layers[0]
	if err := q.Host.AwaitPolling(q.Value()); err != nil { // the layers after it are skipped too, so the wait is short
		return err
	}
	if c.unsubmitted > 0 {
		return fmt.Errorf("layer %d was skipped while others wait to be submitted", l.Layer.Layer)
	}
	for i := range c.layers {
		if of := &c.layers[i]; !of.skipped {
			of.bytes = q.Commands.WeightBytes(of.bufferIndex)
		}
	}
	q.Commands.Discount(l.bufferIndex)
	if err := c.takeChosen(l); err != nil {
		return err
	}
	c.noteMisses(1)
	waited, err := q.Host.TimedWait(s.waves.present.SubmitUploads)
	if err != nil {
		return err
	}
	if err := c.table.noteBatch(s.waves.present); err != nil {
		return err
	}
	s.waves.uploads = s.waves.present.Waits(s.waves.uploads[:0])
	if err := c.openPrelude(l.Layer.Layer); err != nil {
		return err
	}
	q.Commands.Work().Waited, q.Commands.Work().Awaits = waited, l.Unit
	q.Commands.Wait(s.waves.uploads, l.Unit)
	if err := q.Commands.Enqueue(); err != nil {
		return err
	}
	for i := range c.layers {
		c.layers[i].skipped, c.layers[i].value = true, 0
	}
	if err := c.submitSkipped(); err != nil {
		return err
	}
	l.counted = true
	_, err = s.waves.present.Release(q.Value(), s.o.Frame.Hyper.Experts.Count)
	return err
}

// submitSkipped submits the segments of the next skipped layers again: at most as many as are unlikely to miss an expert, see
// [plan.LayersPerSubmission].
func (c *conditional) submitSkipped() error {
	for i := range c.layers {
		l := &c.layers[i]
		if !l.skipped {
			continue
		}
		if c.unsubmitted >= plan.LayersPerSubmission(c.missRate) {
			break
		}
		again, err := c.openLayer(l)
		if err != nil {
			return err
		}
		if !again {
			return fmt.Errorf("layer %d: its commands were not kept", l.Layer.Layer)
		}
		c.layerOpen, l.skipped = false, false
		c.s.o.Queue.Commands.Work().WeightBytes = l.bytes
		c.unsubmitted++
		if err := c.s.o.Queue.Commands.Enqueue(); err != nil {
			return err
		}
	}
	c.s.o.Frame.Lookup = record.Lookup{}
	return c.s.flush()
}
