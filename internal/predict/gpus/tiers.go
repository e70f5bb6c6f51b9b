package gpus

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed tiers.tsv
var tierTable string

// Tier is a GPU in a machine as it is commonly built around it.
type Tier struct {
	GPU
	RAMBytes        int64   `json:"ram_bytes"`
	DiskBytesPerSec float64 `json:"disk_bytes_per_second"` // one drive
}

// What stands around a GPU of which nothing is said.
const (
	commonRAM  = 32 << 30
	commonDisk = 7e9
)

// Tiers are the machines worth trying, from little to much.
func Tiers() []Tier {
	var all []Tier
	for line := range strings.Lines(tierTable) {
		if t, ok := parseTier(strings.TrimSpace(line)); ok { // a test holds that each line is
			all = append(all, t)
		}
	}
	return all
}

func parseTier(line string) (t Tier, ok bool) {
	f := strings.Split(line, "\t")
	if len(f) != 3 || line[0] == '#' {
		return t, false
	}
	ram, err := strconv.ParseFloat(f[1], 64)
	if err != nil {
		return t, false
	}
	disk, err := strconv.ParseFloat(f[2], 64)
	if err != nil {
		return t, false
	}
	for _, g := range All() {
		if g.Name == f[0] {
			return Tier{g, int64(ram * (1 << 30)), disk * 1e9}, true
		}
	}
	return t, false
}

// FindTier is [Find] with what stands around the GPU.
func FindTier(name string) (Tier, error) {
	g, err := Find(name)
	if err != nil {
		return Tier{}, err
	}
	for _, t := range Tiers() {
		if t.Name == g.Name {
			return t, nil
		}
	}
	return Tier{g, g.RAMBytes(), commonDisk}, nil
}
