package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report is the part of the JSON of "leat bench" that the tables show. docs/bench.md describes the whole.
type report struct {
	Format  int      `json:"format"`
	Started string   `json:"started"` // UTC; the date alone in files made from older pages
	Command []string `json:"command"`
	Leat    struct {
		Commit string `json:"commit"`
	} `json:"leat"`
	Device device `json:"device"`
	Model  struct {
		Name         string `json:"name"`
		Quantization string `json:"quantization"`
		Bytes        int64  `json:"bytes"`
	} `json:"model"`
	Settings struct {
		Repetitions int `json:"repetitions"`
	} `json:"settings"`
	Configurations []configuration `json:"configurations"`
}

type device struct {
	Name       string `json:"name"`
	DriverInfo string `json:"driver_info"`
}

// configuration is one set of budgets.
type configuration struct {
	VRAMBytes int64 `json:"vram_asked_bytes"` // 0: what was free
	RAMBytes  int64 `json:"ram_asked_bytes"`  // 0: what was available
	Emulated  *struct {
		Tier string `json:"tier"`
	} `json:"emulated"`
	Plan struct {
		StreamedBytes int64 `json:"streamed_bytes_per_token"`
		DiskBytes     int64 `json:"disk_bytes_per_token"`
		ExpertSlots   int   `json:"expert_slots"`
	} `json:"plan"`
	Rows []row `json:"rows"`
}

// row is one test. Numbers stay as the file writes them, so that those with few digits are not shown with more.
type row struct {
	Test          string   `json:"test"`
	Prompt        int      `json:"prompt_tokens"`
	Generated     int      `json:"generated_tokens"`
	Depth         int      `json:"depth"`
	Speed         spread   `json:"tokens_per_second"`
	Predicted     number   `json:"predicted_tokens_per_second"`
	Difference    *float64 `json:"difference"`            // measured over predicted, less 1; nil: compute it
	PredictedHits *float64 `json:"predicted_at_hit_rate"` // nil: no experts share slots
	Bottleneck    string   `json:"bottleneck"`            // disk, link or compute
	Disk          lane     `json:"disk"`
	Link          lane     `json:"link"`
	VRAM          lane     `json:"vram"`
}

type spread struct {
	Median number `json:"median"`
	Min    number `json:"min"`
	Max    number `json:"max"`
}

type lane struct {
	BytesPerSec    float64 `json:"bytes_per_second"`
	ShareOfCeiling float64 `json:"share_of_ceiling"`
	BusyShare      float64 `json:"busy_share"`
}

// speedUps is what each speed-up of the program wins: speeds with and without it, run in turn.
type speedUps struct {
	Format   int    `json:"format"`
	Started  string `json:"started"`
	Device   device `json:"device"`
	SpeedUps []struct {
		Name    string    `json:"speed_up"`
		Model   string    `json:"model"`
		Where   string    `json:"where"`
		With    []float64 `json:"with"` // tok/s, a run each
		Without []float64 `json:"without"`
	} `json:"speed_ups"`
}

// decode reads a file of results: a report, or speed-ups. It refuses everything else, and what lacks a field that a table needs.
func decode(data []byte) (*report, *speedUps, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, nil, err
	}
	switch {
	case fields["configurations"] != nil:
		var r report
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, nil, err
		}
		return &r, nil, r.validate()
	case fields["speed_ups"] != nil:
		var s speedUps
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, nil, err
		}
		return nil, &s, s.validate()
	}
	return nil, nil, fmt.Errorf("neither a report of leat bench --json nor speed-ups; it has %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
}

func (r *report) validate() error {
	switch {
	case r.Format != 1:
		return fmt.Errorf("format is %d, want 1", r.Format)
	case len(r.Started) < len("2006-01-02"):
		return fmt.Errorf("started is %q, want a date", r.Started)
	case len(r.Command) == 0:
		return errors.New("command is empty")
	case r.Device.Name == "" || r.Device.DriverInfo == "":
		return errors.New("device lacks name or driver_info")
	case r.Model.Name == "" || r.Model.Quantization == "":
		return errors.New("model lacks name or quantization")
	case r.Settings.Repetitions < 1:
		return errors.New("settings.repetitions is missing")
	}
	rows := 0
	for i := range r.Configurations {
		for k := range r.Configurations[i].Rows {
			x := &r.Configurations[i].Rows[k]
			if x.Test == "" || x.Speed.Median.value() <= 0 {
				return fmt.Errorf("configurations[%d].rows[%d] lacks test or tokens_per_second.median", i, k)
			}
			switch x.Bottleneck {
			case "", "disk", "link", "compute":
			default:
				return fmt.Errorf("configurations[%d].rows[%d]: bottleneck is %q, want disk, link or compute", i, k, x.Bottleneck)
			}
			rows++
		}
	}
	if rows == 0 {
		return errors.New("no configuration has a row")
	}
	return nil
}

func (s *speedUps) validate() error {
	switch {
	case s.Format != 1:
		return fmt.Errorf("format is %d, want 1", s.Format)
	case len(s.Started) < len("2006-01-02"):
		return fmt.Errorf("started is %q, want a date", s.Started)
	case s.Device.Name == "" || s.Device.DriverInfo == "":
		return errors.New("device lacks name or driver_info")
	}
	for i, u := range s.SpeedUps {
		if u.Name == "" || u.Model == "" || u.Where == "" || len(u.With) == 0 || len(u.Without) == 0 {
			return fmt.Errorf("speed_ups[%d] lacks speed_up, model, where, with or without", i)
		}
	}
	return nil
}
