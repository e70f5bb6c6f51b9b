package engine

import (
	"fmt"
	"path/filepath"

	"leat/engine/expert"
	"leat/vk"
)

// What a token waits for is the disk where a layer asks it for so many experts. Then one that the next layer will want in all
// likelihood is read while it has not chosen yet.
const (
	fromDisk    = 0.25
	guessedThen = 1
)

// guesses are how many experts may come before a layer has chosen, from RAM and from disk.
func (m *Model) guesses() (near, far int) {
	switch x := m.plan.Experts; {
	case m.o.ExpertGuess > 0:
		return m.o.ExpertGuess, m.o.ExpertGuess
	case m.o.ExpertGuess == 0 && x != nil && m.dev.Physical.Type != vk.CPU && x.FromDisk(m.hyper.Experts.Used) >= fromDisk:
		return 0, guessedThen
	}
	return 0, 0
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
