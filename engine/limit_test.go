package engine_test

import (
	"errors"
	"path/filepath"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/testdata"
)

// Every byte of a lane that is slowed down passes through its rate. (Package limit's test
// holds that these keep to it.)
func TestRates(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf")
	o := setup(engine.Options{KVType: "f32", ContextLength: 64, Tuning: engine.Tuning{Chunk: 16}, HostBytes: 1}) // so little: all that streams comes from disk
	o.DeviceBytes = leastBudget(t, path, o)
	const fast = 1e15
	o.Tuning.Limits.LinkBytesPerSec, o.Tuning.Limits.DiskBytesPerSec, o.Tuning.Limits.VRAMBytesPerSec = fast, fast, fast
	m := load(t, path, o)
	logits(t, m, []token.ID{1, 2, 3, 4})
	link, disk, vram := m.Passed()
	// What goes on beside the step may have been let through, and not be counted yet.
	if st, p := m.Stats(), engine.DetailsOf(m).Plan; link < st.UploadedBytes || disk < p.DiskBytes || vram != st.WeightBytes || min(link, disk, vram) < 1e6 {
		t.Errorf("link %d, disk %d, VRAM %d passed; uploaded %d, read %d, computed with %d", link, disk, vram, st.UploadedBytes, st.DiskBytes, st.WeightBytes)
	}
	var option *engine.OptionError
	if _, err := engine.LoadSetup(t.Context(), path, setup(engine.Options{Tuning: engine.Tuning{Limits: engine.Limits{LinkBytesPerSec: -1}}})); !errors.As(err, &option) || option.Name != "Tuning.Limits.LinkBytesPerSec" {
		t.Errorf("a negative rate: %v", err)
	}
}
