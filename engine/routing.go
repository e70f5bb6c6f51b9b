package engine

import (
	"fmt"
	"path/filepath"

	"leat/internal/expertcache"
)

// newRouting begins the trace of routing that the options ask for, and returns who is told of each step; nil: nobody.
func (r *runner) newRouting() (func(rows int, ids []uint16) error, error) {
	x := &r.p.hyper.Experts
	if r.p.o.Tuning.Routing == nil || x.Count == 0 {
		return nil, nil
	}
	h := expertcache.Header{Model: filepath.Base(r.p.file.Path), Experts: x.Count, Used: x.Used}
	for l := range r.p.hyper.BlockCount {
		experts := r.p.file.Experts(l)
		if len(experts) == 0 {
			continue
		}
		h.Layers++
		for i := range experts {
			h.Bytes = max(h.Bytes, experts[i].Bytes)
		}
	}
	w, err := expertcache.NewWriter(r.p.o.Tuning.Routing, h)
	if err != nil {
		return nil, err
	}
	r.routing = w
	return func(rows int, ids []uint16) error {
		if err := w.Write(expertcache.Step{Rows: rows, IDs: ids}); err != nil {
			return fmt.Errorf("record which experts are used: %w", err)
		}
		return nil
	}, nil
}
