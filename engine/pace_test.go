package engine_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/await"
	"leat/tools/testdata"
)

// oven is a sensor with a temperature of the test's choice.
type oven struct{ temp, reads, closed atomic.Int64 }

func (o *oven) Name() string       { return "oven" }
func (o *oven) SlowdownC() float64 { return 0 }
func (o *oven) Close() error       { o.closed.Add(1); return nil }
func (o *oven) Read() (engine.Reading, error) {
	o.reads.Add(1)
	return engine.Reading{TempC: float64(o.temp.Load()), PowerW: 150}, nil
}

// A hot device rests, and its logits are the bits of one that doesn't; a cool one, and
// one with pacing off, never rests.
func TestPacing(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf")
	base := setup(engine.Options{KVType: "f32", ContextLength: 128, Tuning: engine.Tuning{Chunk: 16}})
	ids := []token.ID{1}
	for i := range 11 {
		ids = append(ids, token.ID(40+7*i))
	}
	plain := load(t, path, base)
	want := logits(t, plain, ids)
	// A small model leaves a GPU idle enough to cool; only on a CPU is it work.
	busy := strings.Contains(plain.DeviceName(), "llvmpipe")
	if r := plain.Stats().Pace; busy && r.By != "off" {
		t.Errorf("on a CPU without a sensor: %+v", r)
	}
	for _, tt := range []struct {
		name  string
		pace  string
		temp  int64
		vram  int64 // 0: all resident
		rests bool
	}{
		{"cool", "auto", 40, 0, false},
		{"hot", "auto", 84, 0, true},
		{"hot, streamed", "auto", 84, leastBudget(t, path, base), true},
		{"hot, off", "off", 84, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			heat := &oven{}
			heat.temp.Store(40)
			o := base
			o.Pace, o.TargetTempC, o.Sensor, o.DeviceBytes = tt.pace, 80, heat, tt.vram
			m := load(t, path, o)
			heat.temp.Store(tt.temp)
			if tt.rests && !busy {
				t.Skipf("the model is too small to heat %s", m.DeviceName())
			}
			var r engine.PaceReport
			seen := heat.reads.Load()
			await.Until(t, "rests, or readings that call for none", func() bool {
				got := logits(t, m, ids)
				for i := range want {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("logit %d: got %g, wanted the bits of %g", i, got[i], want[i])
					}
				}
				r = m.Stats().Pace
				if tt.rests {
					return r.RestShare > 0.02
				}
				return r.RestShare > 0 || tt.pace == "off" || heat.reads.Load()-seen >= 6
			})
			if tt.rests != (r.RestShare > 0.02) || tt.rests != (r.RestPerLayer > 0) {
				t.Errorf("rests wanted: %t; found %+v", tt.rests, r)
			}
			if tt.pace == "auto" && (r.By != "sensor" || r.Sensor != "oven" || r.TargetC != 80 || r.Reading.PowerW != 150) {
				t.Errorf("found %+v", r)
			}
			if tt.pace == "off" && (r != engine.PaceReport{By: "off"}) {
				t.Errorf("off: found %+v", r)
			}
			t.Logf("%+v", r)
			if !tt.rests {
				return
			}
			stopRests(t, m, ids)
			if m.Close(); heat.closed.Load() != 1 {
				t.Errorf("the sensor was closed %d times", heat.closed.Load())
			}
		})
	}
}

// stopRests: a step that is canceled beside it, before or during a rest, ends.
func stopRests(t *testing.T, m *engine.Model, ids []token.ID) {
	t.Helper()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := await.Impatient(t)
	for _, err := range s.Logits(ctx, ids) {
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
	}
}

func TestPaceOptions(t *testing.T) {
	for _, o := range []engine.Setup{{Options: engine.Options{Pace: "fast"}}, {Options: engine.Options{TargetTempC: 20}}, {Options: engine.Options{TargetTempC: -1}}, {Options: engine.Options{TargetTempC: 200}}} {
		_, err := engine.LoadSetup(context.Background(), "absent.gguf", o)
		if _, ok := err.(*engine.OptionError); !ok {
			t.Errorf("%+v: %v, wanted an OptionError", o, err)
		}
	}
}
