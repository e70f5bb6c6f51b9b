package bench

import (
	"fmt"

	"leat/internal/plan"
	"leat/internal/predict"
	"leat/internal/trace"
)

// Test is one thing to time: a prompt, or a generation.
type Test struct {
	Prompt   int // tokens of a prompt to read, or
	Generate int // tokens to generate
	Depth    int // tokens that are in the context already
}

// Name is llama-bench's: pp512, tg128, tg128@d8192.
func (t Test) Name() string {
	name := fmt.Sprintf("tg%d", t.Generate)
	if t.Prompt > 0 {
		name = fmt.Sprintf("pp%d", t.Prompt)
	}
	if t.Depth > 0 {
		name += fmt.Sprintf("@d%d", t.Depth)
	}
	return name
}

// Result is what a model did within one set of budgets.
type Result struct {
	Plan   Placement `json:"plan"`
	Load   Load      `json:"load"`
	Memory Memory    `json:"memory"`
	Rows   []Row     `json:"rows"`
	Notes  []string  `json:"notes,omitempty"` // what was made smaller or left out, and why

	Uses [][]int64 `json:"expert_uses,omitempty"` // (layers that have experts, experts), where it was asked for

	Token Timeline     `json:"-"` // of one generated token, where it was asked for
	Spans []trace.Span `json:"-"` // of several
}

// Placement is where the model lived.
type Placement struct {
	Context       int   `json:"context"`
	Chunk         int   `json:"chunk"`
	ResidentUnits int   `json:"resident_units"`
	HostUnits     int   `json:"host_units"`
	DiskUnits     int   `json:"disk_units"`
	ResidentBytes int64 `json:"resident_bytes"`
	StreamedBytes int64 `json:"streamed_bytes_per_token"`
	DiskBytes     int64 `json:"disk_bytes_per_token"`
	VRAMBudget    int64 `json:"vram_budget_bytes"`
	VRAMBytes     int64 `json:"vram_bytes"`
	RingBytes     int64 `json:"ring_bytes"`
	KVBytes       int64 `json:"kv_bytes"`
	ScratchBytes  int64 `json:"scratch_bytes"`
	RAMBytes      int64 `json:"ram_bytes"`
	DirectReads   bool  `json:"direct_reads"` // the disk is read past the page cache

	Experts      int `json:"experts,omitempty"`        // that share slots of VRAM, where not all fit
	ExpertSlots  int `json:"expert_slots,omitempty"`   // how many VRAM holds
	ExpertsInRAM int `json:"experts_in_ram,omitempty"` // how many rest in RAM; the others do on disk
}

// Units counts all of them.
func (p *Placement) Units() int { return p.ResidentUnits + p.HostUnits + p.DiskUnits }

func placementOf(p *plan.Plan) Placement {
	out := Placement{
		Context: p.ContextLength, Chunk: p.Chunk, StreamedBytes: p.StreamedBytes, DiskBytes: p.DiskBytes,
		VRAMBudget: p.DeviceBudget, VRAMBytes: p.DeviceBytes, RingBytes: p.RingSize(), KVBytes: p.KV.Bytes(),
		ScratchBytes: p.Scratch.Bytes, RAMBytes: p.HostBytes,
	}
	if x := p.Experts; x != nil {
		out.Experts, out.ExpertSlots, out.ExpertsInRAM = x.Total(), x.Slots(), x.HostCount
		out.ResidentBytes += x.SlotBytes()
	}
	for i := range p.Units {
		switch u := &p.Units[i]; u.Tier {
		case plan.Cached: // neither
		case plan.VRAM:
			out.ResidentUnits++
			out.ResidentBytes += u.Bytes
		case plan.Host:
			out.HostUnits++
		default:
			out.DiskUnits++
		}
	}
	return out
}

// Load is what came before the first token.
type Load struct {
	Seconds         float64 `json:"seconds"`           // until all was where it stays
	ColdTTFTSeconds float64 `json:"cold_ttft_seconds"` // from the begin of loading to the first token
	ColdPrompt      int     `json:"cold_prompt_tokens"`
	WarmTTFTSeconds float64 `json:"warm_ttft_seconds,omitempty"` // of the first prompt row, median
	WarmPrompt      int     `json:"warm_prompt_tokens,omitempty"`
}

// Memory is the most that was taken.
type Memory struct {
	VRAMPeak    int64 `json:"vram_peak_bytes"`
	Pinned      int64 `json:"pinned_ram_bytes"`
	RSS         int64 `json:"rss_peak_bytes,omitempty"` // of the process; 0: not known here
	CacheGrowth int64 `json:"page_cache_growth_bytes"`  // of the machine, since before the load; 0 where not known
}

// Row is one test's.
type Row struct {
	Test     string `json:"test"`
	Prompt   int    `json:"prompt_tokens"`
	Generate int    `json:"generated_tokens"`
	Depth    int    `json:"depth"`
	Asked    int    `json:"asked_tokens,omitempty"` // where there was no time for so many

	typical *Experts // of the repetition whose speed is the median; nil: of no one alone

	PerSec  Spread    `json:"tokens_per_second"`  // over repetitions
	Seconds []float64 `json:"seconds"`            // each repetition
	TokenMS *Spread   `json:"token_ms,omitempty"` // generations: over all tokens

	Predicted           float64      `json:"predicted_tokens_per_second,omitempty"`
	Difference          float64      `json:"difference,omitempty"` // measured over predicted, less 1
	PredictedBottleneck predict.Lane `json:"predicted_bottleneck,omitempty"`
	// PredictedHit is the hit rate that Predicted is for, of the repetition with the median speed; nil: no experts share slots.
	PredictedHit *float64 `json:"predicted_at_hit_rate,omitempty"`

	Disk       Lane         `json:"disk"`
	Link       Lane         `json:"link"`
	VRAM       Lane         `json:"vram"`                 // weights that kernels read, while they computed
	Bottleneck predict.Lane `json:"bottleneck,omitempty"` // lane, as it was measured
	// 1: the other lanes were hidden behind the busiest; 0: all worked one after the other.
	// Absent where the others had too little to do to tell.
	Overlap *float64 `json:"overlap,omitempty"`
	Stalled float64  `json:"stalled_share"` // of the time: the device stood idle as weights had not come
	Record  float64  `json:"record_share"`  // of the time: the host recorded and submitted

	Experts *Experts `json:"experts,omitempty"` // that share slots of VRAM

	Ops *Ops `json:"ops,omitempty"` // where they were asked for

	CPUOfCore float64 `json:"cpu_of_one_core"` // 1: one core was busy all the time
	CPUOfAll  float64 `json:"cpu_of_all_cores"`

	TempC     float64 `json:"temp_c,omitempty"` // the highest
	PowerW    float64 `json:"power_w,omitempty"`
	JoulePer  float64 `json:"joules_per_token,omitempty"`
	RestShare float64 `json:"rest_share"` // of the time: the pacer had the device rest
}

// Ops is what the device's time went to, in the steps of a row.
type Ops struct {
	Steps int        `json:"steps"`
	Of    []trace.Op `json:"of"` // longest first
}

// Lane is how busy a part of the machine was.
type Lane struct {
	Bytes       int64   `json:"bytes"`
	BytesPerSec float64 `json:"bytes_per_second"`
	Ceiling     float64 `json:"ceiling_bytes_per_second,omitempty"` // what it was measured to do by itself
	Share       float64 `json:"share_of_ceiling,omitempty"`
	Busy        float64 `json:"busy_share"` // of the time
}
