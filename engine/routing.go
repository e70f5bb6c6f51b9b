package engine

import (
	"fmt"
	"path/filepath"

	"leat/internal/expertcache"
	"leat/internal/plan"
	"leat/vk"
)

// aheadBelow says when layers go ahead.
func (m *Model) aheadBelow() float64 {
	switch {
	case m.o.ahead > 0:
		return m.o.ahead
	case m.dev.Physical.Type == vk.CPU:
		return 0
	}
	return plan.ConditionalBelow
}

// together says whether a layer's experts that are there wait for those that come.
func (m *Model) together() bool {
	return m.o.waves == "together" || m.o.waves == "" && m.dev.Physical.Type == vk.CPU
}

// newRouting begins the trace of routing that the options ask for, and returns who is told of each step; nil: nobody.
func (m *Model) newRouting() (func(rows int, ids []uint16) error, error) {
	x := &m.hyper.Experts
	if m.o.Routing == nil || x.Count == 0 {
		return nil, nil
	}
	h := expertcache.Header{Model: filepath.Base(m.file.Path), Experts: x.Count, Used: x.Used}
	for l := range m.hyper.BlockCount {
		experts := m.file.Experts(l)
		if len(experts) == 0 {
			continue
		}
		h.Layers++
		for i := range experts {
			h.Bytes = max(h.Bytes, experts[i].Bytes)
		}
	}
	w, err := expertcache.NewWriter(m.o.Routing, h)
	if err != nil {
		return nil, err
	}
	m.routing = w
	return func(rows int, ids []uint16) error {
		if err := w.Write(expertcache.Step{Rows: rows, IDs: ids}); err != nil {
			return fmt.Errorf("record which experts are used: %w", err)
		}
		return nil
	}, nil
}
