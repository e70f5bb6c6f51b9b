package gpus

import (
	"errors"
	"strings"
	"testing"
)

func TestTiers(t *testing.T) {
	lines := 0
	for line := range strings.Lines(tierTable) {
		if line[0] != '#' {
			lines++
		}
	}
	all := Tiers()
	if len(all) < 10 || len(all) != lines {
		t.Fatalf("%d tiers in %d lines: is each GPU in the list?", len(all), lines)
	}
	seen := map[string]bool{}
	for _, tier := range all {
		if seen[tier.Name] || tier.RAMBytes < 8<<30 || tier.RAMBytes > 256<<30 || tier.DiskBytesPerSec < 1e8 || tier.DiskBytesPerSec > 20e9 {
			t.Errorf("implausible: %+v", tier)
		}
		seen[tier.Name] = true
		if found, err := FindTier(tier.Name); err != nil || found != tier {
			t.Errorf("FindTier(%q) = %+v, %v", tier.Name, found, err)
		}
	}
}

// A GPU without a line of its own gets common surroundings.
func TestFindTier(t *testing.T) {
	tier, err := FindTier("rtx4080")
	if err != nil || tier.Name != "RTX 4080" || tier.RAMBytes != commonRAM || tier.DiskBytesPerSec != commonDisk {
		t.Errorf("found %+v, %v", tier, err)
	}
	var missing *NotFoundError
	if _, err := FindTier("Voodoo 2"); !errors.As(err, &missing) {
		t.Errorf("a GPU that is not known: %v", err)
	}
}
