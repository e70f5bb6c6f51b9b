package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/predict"
)

// planReport is what leat plan prints.
type planReport struct {
	Summary     string             `json:"summary"` // does it fit, how fast is it, what would help most
	Model       modelReport        `json:"model"`
	Machine     *machine           `json:"machine"`
	Speeds      speedsReport       `json:"speeds"`
	Plan        placement          `json:"plan"`
	Prediction  predict.Prediction `json:"prediction"`
	FullPerSec  float64            `json:"full_context_tokens_per_second"`
	BudgetsFor  int                `json:"budgets_context"`
	Budgets     []budgetRow        `json:"budgets"`          // what other VRAM budgets would give
	Target      *targetReport      `json:"target,omitempty"` // of --tokens
	Helps       *help              `json:"helps,omitempty"`  // what would help most; absent: nothing but a faster GPU
	SecondDrive *driveReport       `json:"second_drive,omitempty"`
}

type modelReport struct {
	Name         string `json:"name"`
	Architecture string `json:"architecture"`
	Units        int    `json:"units"`
	Bytes        int64  `json:"bytes"` // of what is planned: all but the embedding
}

type speedsReport struct {
	Disk    float64 `json:"disk_bytes_per_second"`                 // as tokens read it: again and again
	First   float64 `json:"disk_first_bytes_per_second,omitempty"` // as loading does; absent where not measured
	Link    float64 `json:"link_bytes_per_second"`
	Busy    float64 `json:"busy_link_bytes_per_second"` // while kernels read VRAM at full speed
	Device  float64 `json:"device_bytes_per_second"`
	Flops   float64 `json:"flops"`
	Waiting float64 `json:"dispatch_seconds"`
	Step    float64 `json:"step_seconds"`
}

// placement is where everything lies.
type placement struct {
	Context       int          `json:"context"`
	Chunk         int          `json:"chunk"`
	Tiers         []tierReport `json:"tiers"`
	VRAMBytes     int64        `json:"vram_bytes"`
	VRAMBudget    int64        `json:"vram_budget_bytes"`
	WeightBytes   int64        `json:"weight_bytes"` // resident, slots of experts included
	RingBytes     int64        `json:"ring_bytes"`
	KVBytes       int64        `json:"kv_bytes"`
	ScratchBytes  int64        `json:"scratch_bytes"`
	RAMBytes      int64        `json:"ram_bytes"`
	RAMBudget     int64        `json:"ram_budget_bytes"`
	StreamedBytes int64        `json:"streamed_bytes_per_token"`
	DiskBytes     int64        `json:"disk_bytes_per_token"`
	InPlace       bool         `json:"in_place"` // RAM and VRAM are one memory, and its budget the VRAM's

	Experts *expertPlacement `json:"experts,omitempty"` // that share slots of VRAM, where not all fit
}

// expertPlacement is where experts are: some in slots of VRAM, all of them in RAM or on disk.
type expertPlacement struct {
	All       int     `json:"experts"`
	Slots     int     `json:"slots"`
	SlotBytes int64   `json:"slot_bytes"` // all slots
	InRAM     int     `json:"in_ram"`
	HitRate   float64 `json:"hit_rate"` // if all are as likely
}

func expertsOf(x *plan.Experts) *expertPlacement {
	if x == nil {
		return nil
	}
	slots, all := x.Slots(), x.Total()
	return &expertPlacement{All: all, Slots: slots, SlotBytes: x.SlotBytes(), InRAM: x.HostCount, HitRate: float64(slots) / float64(all)}
}

// String is one line.
func (x *expertPlacement) String() string {
	rest := "all in RAM"
	switch {
	case x.InRAM == 0:
		rest = "all on disk"
	case x.InRAM < x.All:
		rest = fmt.Sprintf("%d in RAM, %d on disk", x.InRAM, x.All-x.InRAM)
	}
	return fmt.Sprintf("%d slots (%s) for %d experts, %s; %.0f %% hits if all are as likely", x.Slots, formatSize(x.SlotBytes), x.All, rest, 100*x.HitRate)
}

type tierReport struct {
	Tier  string `json:"tier"`
	Units int    `json:"units"`
	Bytes int64  `json:"bytes"`
}

type budgetRow struct {
	VRAMBytes     int64        `json:"vram_bytes"`
	StreamedBytes int64        `json:"streamed_bytes_per_token"`
	DecodePerSec  float64      `json:"decode_tokens_per_second"`
	PrefillPerSec float64      `json:"prefill_tokens_per_second"`
	TTFTSeconds   float64      `json:"ttft_seconds"`
	Bottleneck    predict.Lane `json:"bottleneck"`
	What          string       `json:"what,omitempty"` // "least", "all"
}

type targetReport struct {
	DecodePerSec float64 `json:"decode_tokens_per_second"`
	VRAMBytes    int64   `json:"vram_bytes"` // 0: no budget reaches it
	Most         float64 `json:"most_tokens_per_second"`
}

type driveReport struct {
	DecodePerSec float64      `json:"decode_tokens_per_second"`
	Bottleneck   predict.Lane `json:"bottleneck"`
	TTFTSeconds  float64      `json:"ttft_seconds"`
}

// tableContext is enough to talk, and a small part of any budget.
const tableContext = 4096

// answer plans, predicts, and looks at what else there could be.
func (f *planFlags) answer(name string, h *arch.Hyper, m *pack.Model, mach *machine) (*planReport, error) {
	q := predict.Question{Search: plan.Search{Hyper: h, Model: m, Within: mach.within}, Speeds: mach.speeds, Context: f.depth, Prompt: f.prompt}
	a, err := q.Of(mach.budget)
	if err != nil {
		return nil, err
	}
	p := a.Plan
	ram := mach.budget.HostBytes
	if p.InPlace { // one memory, counted once
		ram = 0
	}
	r := &planReport{Machine: mach, Prediction: a.Prediction, Plan: placementOf(p, ram)}
	r.Model = modelReport{Name: name, Architecture: h.Architecture, Units: len(p.Units)}
	for i := range p.Units {
		r.Model.Bytes += p.Units[i].Bytes
	}
	s := &mach.speeds
	r.Speeds = speedsReport{s.Disk.BytesPerSec, s.Disk.FirstBytesPerSec, s.Link.BytesPerSec, s.Link.BusyBytesPerSec, s.Kernels.BytesPerSec, s.Kernels.FlopsPerSec, s.Kernels.DispatchTime.Seconds(), s.HostOverheadPerStep.Seconds()}
	r.FullPerSec = predict.Plan(p, mach.speeds, h, p.ContextLength, 1).DecodePerSec
	if r.BudgetsFor = p.ContextLength; f.ctx == 0 {
		r.BudgetsFor = min(p.ContextLength, tableContext)
	}
	q.Within = func(deviceBytes int64) (plan.Budget, error) {
		b, err := mach.within(deviceBytes)
		b.ContextLength = r.BudgetsFor // settled, or a smaller budget would shrink it
		return b, err
	}
	if r.Budgets, err = budgetRows(&q); err != nil {
		return nil, err
	}
	if f.tokens > 0 {
		n, best, err := q.Reaching(f.tokens)
		if err != nil {
			return nil, err
		}
		r.Target = &targetReport{f.tokens, n, best.Prediction.DecodePerSec}
	}
	if p.DiskBytes > 0 {
		b := mach.budget
		b.ContextLength = p.ContextLength
		two, err := q.Drives(2, b)
		if err != nil {
			return nil, err
		}
		r.SecondDrive = &driveReport{two.Prediction.DecodePerSec, two.Prediction.DecodeBottleneck, two.Prediction.TTFTSeconds}
	}
	r.Helps = mostHelp(&q, mach, a)
	r.Summary = r.summarise(p)
	return r, nil
}

func placementOf(p *plan.Plan, ram int64) placement {
	out := placement{
		Context: p.ContextLength, Chunk: p.Chunk, VRAMBytes: p.DeviceBytes, VRAMBudget: p.DeviceBudget, RingBytes: p.RingSize(),
		KVBytes: p.KV.Bytes(), ScratchBytes: p.Scratch.Bytes, RAMBytes: p.HostBytes, RAMBudget: ram, StreamedBytes: p.StreamedBytes, DiskBytes: p.DiskBytes,
		InPlace: p.InPlace,
	}
	for _, b := range p.Blocks {
		out.WeightBytes += b
	}
	out.WeightBytes += p.Experts.SlotBytes()
	out.Experts = expertsOf(p.Experts)
	for tier := plan.VRAM; tier <= plan.Cached; tier++ {
		if tier == plan.Cached && p.Experts == nil {
			break
		}
		t := tierReport{Tier: tier.String()}
		for i := range p.Units {
			if p.Units[i].Tier == tier {
				t.Units++
				t.Bytes += p.Units[i].Bytes
			}
		}
		out.Tiers = append(out.Tiers, t)
	}
	return out
}

// budgetRows asks what other budgets give: those that cards have, or, for a model smaller
// than any card, even steps.
func budgetRows(q *predict.Question) ([]budgetRow, error) {
	least, err := q.Least()
	if err != nil {
		return nil, err
	}
	all, err := q.AllResident()
	if err != nil {
		return nil, err
	}
	var sizes []int64
	for _, gib := range []int64{1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 141, 192} {
		if n := gib << 30; n > least && n < all {
			sizes = append(sizes, n)
		}
	}
	if len(sizes) < 2 {
		sizes = nil
		for i := range int64(3) {
			sizes = append(sizes, (least+(all-least)*(i+1)/4+1<<20-1)>>20<<20)
		}
	}
	sizes = append(sizes, least, all)
	slices.Sort(sizes)
	var rows []budgetRow
	for _, n := range slices.Compact(sizes) {
		a, err := q.At(n)
		if err != nil {
			return nil, err
		}
		p := &a.Prediction
		row := budgetRow{n, a.Plan.StreamedBytes, p.DecodePerSec, p.PrefillPerSec, p.TTFTSeconds, p.DecodeBottleneck, ""}
		switch n {
		case all:
			row.What = "all"
		case least:
			row.What = "least"
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// formatDisk is the rate of a disk, and that of what it had not read before where it is another.
func formatDisk(again, first float64) string {
	text := formatRate(again)
	if first > 0 && math.Abs(again/first-1) > 0.05 {
		text += ", when first read " + formatRate(first)
	}
	return text
}

func (r *planReport) print(w io.Writer) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%-9s"+format+"\n", append([]any{label}, args...)...)
	}
	p, s, t := &r.Prediction, &r.Speeds, &r.Plan
	fmt.Fprintf(w, "%s\n\n", r.Summary)
	line("model", "%s: %s, %d units, %s", r.Model.Name, r.Model.Architecture, r.Model.Units, formatSize(r.Model.Bytes))
	line("machine", "%s, speeds by %s; kernels %s", r.Machine.Name, sourceText(r.Machine.Source), r.Machine.Kernels)
	line("", "disk %s (%s), link %s%s, weights in VRAM %s%s, products %s TFLOPS%s", formatDisk(s.Disk, s.First), r.Machine.DiskAs, formatRate(s.Link), r.Machine.as(assumesLink),
		formatRate(s.Device), r.Machine.as(assumesDevice), digits(s.Flops/1e12, 3), r.Machine.as(assumesFlops))
	fmt.Fprintln(w)
	for i, tier := range t.Tiers {
		how := []string{"stays", "streams over the link for each token", "is read and streams for each token", "experts share slots"}[i]
		line(tier.Tier, "%3d units %10s  %s", tier.Units, formatSize(tier.Bytes), how)
	}
	if t.Experts != nil {
		line("experts", "%s", t.Experts)
	}
	fmt.Fprintln(w)
	line("VRAM", "%s of %s: weights %s, ring %s, KV cache of %d tokens %s, scratch %s",
		formatSize(t.VRAMBytes), formatSize(t.VRAMBudget), formatSize(t.WeightBytes), formatSize(t.RingBytes), t.Context, formatSize(t.KVBytes), formatSize(t.ScratchBytes))
	if r.Plan.InPlace {
		line("RAM", "the same memory: weights are read where they lie")
	} else {
		line("RAM", "%s of %s%s", formatSize(t.RAMBytes), formatSize(t.RAMBudget), r.Machine.as(assumesRAM))
	}
	fmt.Fprintln(w)
	line("decode", "%s tok/s%s, %s a token, with %d tokens in the session; bottleneck: %s", formatSpeed(p.DecodePerSec), r.estimate(), seconds(p.DecodeSeconds), p.Context, p.DecodeBottleneck)
	line("", "busy: disk %s, link %s, compute %s", seconds(p.Decode.DiskSeconds), seconds(p.Decode.LinkSeconds), seconds(p.Decode.ComputeSeconds))
	if len(p.HitRates) > 0 {
		var rates []string
		for _, h := range p.HitRates {
			rates = append(rates, fmt.Sprintf("%.0f %%: %s", 100*h.Rate, formatSpeed(h.DecodePerSec)))
		}
		line("", "tok/s by the part of experts found in VRAM: %s", strings.Join(rates, ", "))
		line("", "%s is for experts that are used alike, %.0f %% found; used as by Zipf's law, %.0f %% at best, it is %s", formatSpeed(p.DecodePerSec), 100*t.Experts.HitRate, 100*p.Skewed.Rate, formatSpeed(p.Skewed.DecodePerSec))
	}
	if t.Context > p.Context {
		line("", "%s tok/s with the context of %d tokens full", formatSpeed(r.FullPerSec), t.Context)
	}
	if t.StreamedBytes > 0 {
		line("", "bound %s tok/s; in lock-step, each unit waiting for the next, it would be %s", formatSpeed(p.BoundPerSec), formatSpeed(p.LockStepPerSec))
	}
	line("prefill", "%d tokens in %s, %s tok/s%s, %d at a time; bottleneck: %s", p.Prompt, seconds(p.TTFTSeconds), formatSpeed(p.PrefillPerSec), r.estimate(), t.Chunk, p.PrefillBottleneck)
	line("load", "%s, until all is where it stays", seconds(p.LoadSeconds))
	fmt.Fprintln(w)
	r.printNeed(w)
}

// estimate marks what follows from assumed figures.
func (r *planReport) estimate() string {
	if slices.Contains(r.Machine.Assumed, assumesDevice) || r.Plan.DiskBytes > 0 && slices.Contains(r.Machine.Assumed, assumesDisk) {
		return " (an estimate)"
	}
	return ""
}

func sourceText(source string) string {
	if source == "measured" {
		return "measurement"
	}
	return source
}

// printNeed says what other budgets and disks would bring.
func (r *planReport) printNeed(w io.Writer) {
	fmt.Fprintf(w, "With other budgets, in tok/s, and --ctx %d:\n\n", r.BudgetsFor)
	fmt.Fprintf(w, "%12s %10s %10s %12s  %s\n", "--vram", "decode", "prefill", "streamed", "bottleneck")
	for _, row := range r.Budgets {
		note := map[string]string{"least": ", the least that holds", "all": ", all in VRAM"}[row.What]
		fmt.Fprintf(w, "%12s %10s %10s %12s  %s%s\n", budgetText(row.VRAMBytes), formatSpeed(row.DecodePerSec), formatSpeed(row.PrefillPerSec), formatSize(row.StreamedBytes), row.Bottleneck, note)
	}
	if t := r.Target; t != nil {
		fmt.Fprintln(w)
		if t.VRAMBytes > 0 {
			fmt.Fprintf(w, "%s tok/s need --vram %s\n", formatSpeed(t.DecodePerSec), budgetText(t.VRAMBytes))
		} else {
			fmt.Fprintf(w, "%s tok/s can't be reached on this machine: with all in VRAM it is %s\n", formatSpeed(t.DecodePerSec), formatSpeed(t.Most))
		}
	}
	fmt.Fprintln(w)
	switch d := r.SecondDrive; {
	case d == nil:
		fmt.Fprintln(w, "A second drive would bring nothing: no token is read from disk.")
	default:
		more := "A second drive like the first, striped"
		if n := r.Machine.Disks; n > 1 {
			more = fmt.Sprintf("%d drives like these %d", 2*n, n)
		}
		fmt.Fprintf(w, "%s: decode %s (%s), the prompt in %s; bottleneck: %s\n", more, speedText(d.DecodePerSec),
			formatChange(d.DecodePerSec/r.Prediction.DecodePerSec-1), seconds(d.TTFTSeconds), d.Bottleneck)
	}
}

// budgetText is a budget as a flag takes it.
func budgetText(n int64) string {
	if n%(1<<30) == 0 {
		return fmt.Sprintf("%dGiB", n>>30)
	}
	return fmt.Sprintf("%dMiB", n>>20)
}
