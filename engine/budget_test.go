package engine

import (
	"errors"
	"leat/gguf"
	"testing"
)

func TestBudgetOf(t *testing.T) {
	b, err := Options{}.BudgetOf(24<<30, 32<<30, false)
	if err != nil || b.DeviceBytes < 20<<30 || b.DeviceBytes > 23<<30 || b.HostBytes < 20<<30 || b.HostBytes > 28<<30 || b.KVType != gguf.F16 {
		t.Errorf("24 and 32 GiB: %+v, %v", b, err)
	}
	if u, err := (Options{}).BudgetOf(24<<30, 32<<30, true); err != nil || u.HostBytes >= b.HostBytes {
		t.Errorf("one memory: %+v, %v", u, err)
	}
	b, err = Options{DeviceBytes: 1 << 30, HostBytes: 2 << 30, KVType: "f32", ContextLength: 7}.BudgetOf(24<<30, 32<<30, false)
	if err != nil || b.DeviceBytes != 1<<30 || b.HostBytes != 2<<30 || b.KVType != gguf.F32 || b.ContextLength != 7 {
		t.Errorf("given: %+v, %v", b, err)
	}
	var option *OptionError
	if _, err := (Options{KVType: "q1"}).BudgetOf(1, 1, false); !errors.As(err, &option) {
		t.Errorf("a wrong option: %v", err)
	}
}
