package main

import (
	"fmt"

	"leat/internal/plan"
	"leat/internal/predict"
)

// help is what more of something would bring.
type help struct {
	What         string  `json:"what"`
	DecodePerSec float64 `json:"decode_tokens_per_second"`
}

// worthSaying is a part more that one notices.
const worthSaying = 0.05

// mostHelp asks what twice as much of each would bring, and returns what brings most; nil: nothing of it helps.
func mostHelp(q *predict.Question, mach *machine, now predict.Answer) *help {
	var best *help
	try := func(what string, better predict.Question, b plan.Budget) {
		a, err := better.Of(b)
		if err != nil || a.Prediction.DecodePerSec < (1+worthSaying)*now.Prediction.DecodePerSec {
			return
		}
		if best == nil || a.Prediction.DecodePerSec > best.DecodePerSec {
			best = &help{what, a.Prediction.DecodePerSec}
		}
	}
	b := mach.budget
	b.ContextLength = now.Plan.ContextLength
	more := b
	more.DeviceBytes *= 2
	if b.InPlace {
		more.HostBytes *= 2
		try("twice the memory", *q, more)
	} else {
		try(fmt.Sprintf("twice the VRAM (%s)", formatSize(more.DeviceBytes)), *q, more)
	}
	if now.Plan.DiskBytes > 0 {
		if !b.InPlace {
			more = b
			more.HostBytes *= 2
			try(fmt.Sprintf("twice the RAM (%s)", formatSize(more.HostBytes)), *q, more)
		}
		try("a second drive", q.WithDrives(2), b)
	}
	if now.Plan.StreamedBytes > 0 && !b.InPlace {
		try("a link twice as fast", q.WithLink(2), b)
	}
	return best
}

// summarise is the first sentence: does it fit, how fast is it, what would help most.
func (r *planReport) summarise(p *plan.Plan) string {
	fits, memory := "", "VRAM"
	if r.Plan.InPlace {
		memory = "memory"
	}
	switch from := from(p); {
	case p.StreamedBytes == 0:
		fits = fmt.Sprintf("It fits: all %s stay in %s", formatSize(r.Model.Bytes), memory)
	case p.Experts != nil:
		fits = fmt.Sprintf("It runs, but not all of it fits: of %d experts %d have room in VRAM, and others come from %s as they are asked for", p.Experts.Total(), p.Experts.Slots(), from)
	default:
		fits = fmt.Sprintf("It runs, but not all of it fits: of %s %s come from %s for each token", formatSize(r.Model.Bytes), formatSize(p.StreamedBytes), from)
	}
	speed := "about " + speedText(r.Prediction.DecodePerSec) + r.estimate()
	helps := "only a faster GPU would help"
	if r.Helps != nil {
		helps = fmt.Sprintf("%s would help most: %s", r.Helps.What, speedText(r.Helps.DecodePerSec))
	} else if p.StreamedBytes > 0 {
		helps = "twice of nothing here would help"
	}
	return fmt.Sprintf("%s, %s; %s.", fits, speed, helps)
}

// from names where what is streamed comes from.
func from(p *plan.Plan) string {
	switch {
	case p.DiskBytes == 0:
		return "RAM"
	case p.DiskBytes >= p.StreamedBytes:
		return "disk"
	}
	return "RAM and disk"
}
