package engine

import (
	"fmt"
	"path/filepath"

	"leat/engine/expert"
	"leat/engine/plan"
	"leat/vk"
)

// several is how many experts layers must miss for one to come early.
const several = 2

// aheadBelow says when layers go ahead.
func (m *Model) aheadBelow() float64 {
	switch {
	case m.o.ahead > 0:
		return m.o.ahead
	case m.dev.Physical.Type == vk.CPU:
		return 0
	}
	return plan.Seldom
}

// foresees says how many experts of the next layer may come early, and how many a layer must miss for that; 0: none.
// By itself the engine has one come where a GPU misses several and all rest in RAM: what comes early then is one less to wait for, and
// where few are missed layers go faster without (30B-A3B on an H200: 2.7 of 8 missed +6 %, 1.4 -12 %).
func (m *Model) foresees() (guess int, above float64) {
	x := m.plan.Experts
	switch {
	case m.o.ExpertGuess != 0:
		return max(0, m.o.ExpertGuess), 0
	case x == nil, m.dev.Physical.Type == vk.CPU && !m.o.guesses, x.HostCount < x.All():
		return 0, 0
	}
	return 1, several
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
	h := expert.Header{Model: filepath.Base(m.file.Path), Experts: x.Count, Used: x.Used}
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
	w, err := expert.NewWriter(m.o.Routing, h)
	if err != nil {
		return nil, err
	}
	m.routing = w
	return func(rows int, ids []uint16) error {
		if err := w.Write(expert.Step{Rows: rows, IDs: ids}); err != nil {
			return fmt.Errorf("record which experts are used: %w", err)
		}
		return nil
	}, nil
}
