package gpus

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	all := All()
	lines := 0
	for line := range strings.Lines(table) {
		if line[0] != '#' {
			lines++
		}
	}
	if len(all) < 80 || len(all) != lines {
		t.Fatalf("%d GPUs in %d lines", len(all), lines)
	}
	seen := map[string]bool{}
	for _, g := range all {
		if seen[g.Name] || g.VRAMBytes < 4<<30 || g.MemBytesPerSec < 50e9 || g.MemBytesPerSec > 6e12 || g.FP32 < 1e12 || g.FP32 > 200e12 ||
			g.BF16 < g.FP32 || g.FP4 != 0 && g.FP4 < g.BF16 || g.Source == "" {
			t.Errorf("implausible: %+v", g)
		}
		seen[g.Name] = true
		if g.UMA != (g.PCIeBytesPerSec() == 0) {
			t.Errorf("%s: UMA %v, PCIe %.0f", g.Name, g.UMA, g.PCIeBytesPerSec())
		}
		if found, err := Find(g.Name); err != nil || found.Name != g.Name {
			t.Errorf("Find(%q) = %q, %v", g.Name, found.Name, err)
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct{ ask, want string }{
		{"RTX 4090", "RTX 4090"}, {"4090", "RTX 4090"}, {"NVIDIA GeForce RTX 4090", "RTX 4090"}, {"rtx4060ti 16gb", "RTX 4060 Ti 16GB"},
		{"AMD Radeon RX 7900 XTX", "RX 7900 XTX"}, {"8060s", "Radeon 8060S"}, {"NVIDIA H100 80GB HBM3", "H100"}, {"m4 max", "Apple M4 Max"},
		{"Intel(R) Arc(TM) B580 Graphics", "Arc B580"}, {"gtx1660", "GTX 1660"}, {"Tesla P40", "P40"}, {"AMD Instinct MI50 32GB", "MI50 32GB"}, {"RTX 3050", "RTX 3050"}, {"rtx3050 6gb", "RTX 3050 6GB"}, {"a100", ""}, {"rtx 4091", ""}, {"", ""}, {"Voodoo 2", ""},
	} {
		g, err := Find(c.ask)
		var missing *NotFoundError
		if g.Name != c.want || (c.want == "") != errors.As(err, &missing) {
			t.Errorf("Find(%q) = %q, %v; wanted %q", c.ask, g.Name, err, c.want)
		}
	}
	_, err := Find("rtx 4091")
	var missing *NotFoundError
	if !errors.As(err, &missing) || !slices.Contains(missing.Near, "RTX 4090") || missing.Hint() == "" {
		t.Errorf("suggests %+v", missing)
	}
	if _, err = Find("a100"); !errors.As(err, &missing) || len(missing.Among) != 2 {
		t.Errorf("two A100s: %v", err)
	}
}
