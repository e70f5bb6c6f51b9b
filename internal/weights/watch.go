package weights

import (
	"time"

	"leat/internal/plan"
	"leat/internal/trace"
	"leat/vk/file"
	"leat/vk/xfer"
)

// tag says what bytes on their way are for: which unit, in which step, 0 for loading.
func (s *Store) tag(unit int) uint64 {
	step := s.serving
	if s.units[unit].Tier == plan.VRAM {
		step = 0
	}
	return uint64(step)<<32 | uint64(unit)
}

// serve notes, for tag, which step the walker turns to: the first that it has not done.
func (s *Store) serve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = s.steps - len(s.begun) + 1
}

// span keeps a reader's or a lane's work for what has that tag.
func (s *Store) span(lane trace.Lane, track int, tag uint64, bytes int64, begin, end time.Time) {
	unit, step := uint32(tag), int(tag>>32)
	s.o.Trace.Add(trace.Span{Lane: lane, Track: track, Name: s.units[unit].Name, Step: step, Bytes: bytes}, begin, end)
}

// read is who is told of reads: nobody where nothing is kept.
func (s *Store) read() func(file.Done) {
	if s.o.Trace == nil {
		return nil
	}
	return func(d file.Done) { s.span(trace.Disk, d.Reader, d.Tag, d.Bytes, d.Begin, d.End) }
}

// copied is told of copies.
func (s *Store) copied(d *xfer.Done) {
	unit, step := uint32(d.Tag), d.Tag>>32
	if end := &s.ended[unit][step%2]; end.Load() == 0 || s.o.Device.Clock.Between(end.Load(), d.Ticks) > 0 {
		end.Store(d.Ticks)
	}
	if s.o.Trace != nil {
		begin, end := d.Times()
		s.span(trace.Link, d.Lane, d.Tag, d.Bytes, begin, end)
	}
}

// Busy is how long a read was outstanding, and how long a copy was under way that has
// ended before the last Collect.
//
// Experts that share slots have readers and lanes of their own: where others are streamed beside them, it is the busier
// of both.
func (s *Store) Busy() (disk, link time.Duration) {
	s.mu.Lock()
	if disk = s.reading; s.pool != nil {
		disk += s.pool.Busy()
	}
	s.mu.Unlock()
	link = s.up.Busy()
	if x := s.experts; x != nil {
		disk, link = max(disk, x.pool.Busy()), max(link, x.up.Busy())
	}
	return disk, link
}

// Collect accounts for the copies that have ended by now.
func (s *Store) Collect() error {
	if x := s.experts; x != nil {
		if err := x.up.Collect(); err != nil {
			return err
		}
	}
	return s.up.Collect()
}

// Late is how long after a timestamp of the device the bytes of unit i, for the step that
// begun last, had come: 0 or less where they were there already. Copies must have been
// collected. False where the device can't tell.
func (s *Store) Late(i int, ticks uint64) (late time.Duration, ok bool) {
	s.mu.Lock()
	step := s.steps
	s.mu.Unlock()
	if s.units[i].Tier == plan.VRAM {
		step = 0
	}
	end := s.ended[i][step%2].Load()
	return s.o.Device.Clock.Between(ticks, end), end != 0
}
