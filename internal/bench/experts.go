package bench

import (
	"errors"
	"io"

	"leat/engine"
	"leat/internal/expertcache"
	"leat/internal/predict"
)

// Experts is what the slots of experts did in some steps. A step asks once for each that a layer needs.
type Experts struct {
	Steps      int64   `json:"steps"`
	Tokens     int64   `json:"tokens"`   // that went through them
	HitRate    float64 `json:"hit_rate"` // of what was asked for, in VRAM
	Hits       int64   `json:"hits"`
	HostMisses int64   `json:"misses_in_ram"`
	DiskMisses int64   `json:"misses_on_disk"`
	Evictions  int64   `json:"evictions"`
	Uploaded   int64   `json:"uploaded_bytes"`
	Read       int64   `json:"disk_bytes"`

	Ahead    float64 `json:"ahead_share"`        // of layers, those of single tokens that found all theirs without asking the host
	Distinct float64 `json:"distinct_per_layer"` // different experts that a layer of a step needed, on average

	// Bytes of experts that a token took, by the tier they were in when a layer asked.
	VRAMPerToken float64 `json:"vram_bytes_per_token"`
	RAMPerToken  float64 `json:"ram_bytes_per_token"`
	DiskPerToken float64 `json:"disk_bytes_per_token"`

	Stalled   float64 `json:"stalled_seconds"` // the device stood idle as experts had not come; a part of the row's stalled_share
	StalledMS float64 `json:"stalled_ms_per_step"`
}

// ExpertsOf is what happened from one look at a model to a later one; nil: no layer asked for an expert.
func ExpertsOf(from, to *engine.Stats) *Experts {
	return expertsOf(to.Experts.Less(from.Experts), to.Steps-from.Steps, to.Rows-from.Rows)
}

func expertsOf(x engine.ExpertStats, steps, rows int64) *Experts {
	if x.Asked() == 0 || steps == 0 || rows == 0 {
		return nil
	}
	each := func(bytes int64) float64 { return float64(bytes) / float64(rows) }
	return &Experts{
		Steps: steps, Tokens: rows, HitRate: x.HitRate(), Hits: x.Hits, HostMisses: x.HostMisses, DiskMisses: x.DiskMisses,
		Evictions: x.Evictions, Uploaded: x.UploadedBytes, Read: x.DiskBytes,
		Ahead: float64(x.Ahead) / float64(max(1, x.Layers)), Distinct: x.Distinct(), VRAMPerToken: each(x.VRAMBytes), RAMPerToken: each(max(0, x.UploadedBytes-x.DiskBytes)), DiskPerToken: each(x.DiskBytes),
		Stalled: x.Stalled.Seconds(), StalledMS: 1000 * x.Stalled.Seconds() / float64(steps),
	}
}

// ExpertHits is how the steps found their experts, as predictions want it.
func (x *Experts) ExpertHits() *predict.ExpertHits {
	asked := float64(x.Hits + x.HostMisses + x.DiskMisses)
	came := float64(x.HostMisses + x.DiskMisses)
	return &predict.ExpertHits{HitRate: 1 - min(1, came/max(1, asked)), DiskShare: min(1, float64(x.Read)/float64(max(1, x.Uploaded)))}
}

// uses counts which experts a model tells that it uses, as it tells it: a trace of a long run would be large.
type uses struct {
	*io.PipeWriter
	done chan error
	all  *expertcache.Uses
}

func countUses() *uses {
	r, w := io.Pipe()
	u := &uses{PipeWriter: w, done: make(chan error, 1)}
	go func() {
		err := u.read(r)
		r.CloseWithError(err) // whoever writes then hears it
		u.done <- err
	}()
	return u
}

func (u *uses) read(from io.Reader) error {
	r, err := expertcache.NewReader(from)
	if err != nil {
		return err
	}
	u.all = expertcache.NewUses(r.Header())
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		u.all.Add(s)
	}
}

// close returns what was counted, once nobody writes any more; nil: nothing was, as of a model that has no experts.
func (u *uses) close() ([][]int64, error) {
	u.PipeWriter.Close()
	err := <-u.done
	if u.all == nil {
		return nil, nil
	}
	return u.all.Layers(), err
}
