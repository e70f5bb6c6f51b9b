package engine

import (
	"context"
	"errors"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/predict"
)

// streams times one row in a view of which all layers are streamed from RAM, beside the same one all in VRAM. Where that
// can't be had, nothing is known of it.
func (r *rehearsal) streams(ctx context.Context) error {
	v := view{other: r.first, streamed: true}
	_, _, p, err := r.planFor(v)
	if err != nil || p.InPlace || p.Experts != nil || p.StreamedBytes == 0 || p.DiskBytes > 0 {
		return nil
	}
	both, err := r.each(ctx, r.result.Steps[:1], v, view{other: r.first})
	if err != nil && ctx.Err() == nil {
		r.p.o.Logger.Warn("what a streamed unit costs beside its bytes is not known", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	r.result.Streamed = predict.StreamedLayers{Seconds: both[0][0], Resident: both[1][0], Bytes: p.StreamedBytes}
	for i := range p.Units {
		if !p.Units[i].Resident() {
			r.result.Streamed.Units++
		}
	}
	return nil
}

// leastVRAM plans within as little VRAM as holds the model.
func leastVRAM(h *arch.Hyper, m *pack.Model, b plan.Budget) (*plan.Plan, error) {
	most := b.DeviceBytes
	for b.DeviceBytes = 1; ; {
		p, err := plan.Make(h, m, b)
		var small *plan.BudgetError
		if !errors.As(err, &small) || small.Tier != plan.VRAM || small.Need <= b.DeviceBytes || small.Need > most {
			return p, err
		}
		b.DeviceBytes = small.Need
	}
}
