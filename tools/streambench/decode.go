package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"leat/engine"
	"leat/engine/token"
)

const warmUp = 3 // tokens: the host tier is read by then, pipelines are built

// decode runs one generation within budgets and prints what it did, one line.
func decode(ctx context.Context, o options, point engine.Options, out io.Writer) error {
	begin := time.Now()
	m, err := engine.Load(ctx, o.model, point)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	prompt := make([]token.ID, o.prompt)
	for i := range prompt {
		prompt[i] = token.ID((i*7919 + 3) % m.Info().VocabSize)
	}
	loaded := time.Since(begin)
	var first time.Duration
	var took []float64
	var start sample
	n, last := 0, begin
	for _, err := range s.Generate(ctx, prompt, engine.Params{MaxTokens: o.n + warmUp, IgnoreEOG: true}) {
		if err != nil {
			return err
		}
		now := time.Now()
		switch n++; {
		case n == 1:
			first = now.Sub(begin)
		case n > warmUp:
			took = append(took, now.Sub(last).Seconds())
		}
		last = now
		if n == warmUp {
			start = take(m)
		}
	}
	end := take(m)
	report(out, m, point, took, first, loaded, start, end)
	return nil
}

// sample is the counters at one moment.
type sample struct {
	at     time.Time
	cpu    time.Duration
	stats  engine.Stats
	cached int64
}

func take(m *engine.Model) (s sample) {
	s.at, s.cpu, s.cached, s.stats = time.Now(), cpuTime(), meminfo("Cached:"), m.Stats()
	return s
}

func report(out io.Writer, m *engine.Model, o engine.Options, took []float64, first, loaded time.Duration, a, b sample) {
	p := engine.DetailsOf(m).Plan
	wall := b.at.Sub(a.at).Seconds()
	n := float64(len(took))
	fmt.Fprintf(out, "tokens (ms):")
	for _, t := range took[:min(len(took), 40)] {
		fmt.Fprintf(out, " %.1f", 1e3*t)
	}
	fmt.Fprintln(out)
	slices.Sort(took)
	var ring, resident int64
	for _, r := range p.Ring {
		ring += r
	}
	for i := range p.Units {
		if p.Units[i].Resident() {
			resident += p.Units[i].Bytes
		}
	}
	fmt.Fprintf(out, "decode: vram %s (resident %s, ring %s, scratch %s, kv %s) host %s chunk %d, %v, %d slots of %d KiB | streamed %s a token, disk %s | "+
		"%.3f tok/s, median %.1f ms, worst %.1f ms | link %.2f GB/s, disk %.2f GB/s direct %v | cpu %.1f%% of a core | cache %+d MiB | open %.2f s, first token %.2f s\n",
		gib(p.DeviceBytes), gib(resident), gib(ring), gib(p.Scratch.Bytes), gib(p.KV.Bytes()), gib(m.Stats().HostBytes), p.Chunk, o.Tuning.Layout.Spread, p.Staging.Slots, p.Staging.SlotBytes>>10,
		gib(p.StreamedBytes), gib(p.DiskBytes),
		n/wall, 1e3*took[len(took)/2], 1e3*took[len(took)-1],
		float64(b.stats.UploadedBytes-a.stats.UploadedBytes)/1e9/wall, float64(b.stats.DiskBytes-a.stats.DiskBytes)/1e9/wall, b.stats.DirectReads,
		100*(b.cpu-a.cpu).Seconds()/wall, (b.cached-a.cached)>>20, loaded.Seconds(), first.Seconds())
	share := func(a, b time.Duration) float64 { return 100 * (b - a).Seconds() / wall }
	x, y := &a.stats, &b.stats
	fmt.Fprintf(out, "busy: link %.1f%%, disk %.1f%%, compute %.1f%%, stalled %.1f%%, recording %.1f%% | %.0f submissions/s, %.1f µs of recording each\n",
		share(x.Link, y.Link), share(x.Disk, y.Disk), share(x.Compute, y.Compute), share(x.Stalled, y.Stalled), share(x.Record, y.Record),
		float64(y.Submissions-x.Submissions)/wall, float64((y.Record-x.Record).Microseconds())/float64(max(1, y.Submissions-x.Submissions)))
}

func gib(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }
