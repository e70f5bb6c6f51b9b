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
	RAMBytes        int64   `json:"ram_bytes"`             // the machine's RAM; UMA: all of the shared memory
	DiskBytesPerSec float64 `json:"disk_bytes_per_second"` // how fast its one drive is read
}

// The machine around a GPU that tiers.tsv does not name.
const (
	commonRAM  = 32 << 30 // bytes of RAM
	commonDisk = 7e9      // bytes a second that its drive reads
)

// Tiers lists the machines of tiers.tsv, in its order: from little memory to much.
func Tiers() []Tier {
	var all []Tier
	for line := range strings.Lines(tierTable) {
		if t, ok := parseTier(strings.TrimSpace(line)); ok { // a test holds that each line is
			all = append(all, t)
		}
	}
	return all
}

// parseTier makes a Tier of a line of tiers.tsv; ok is false for a comment, and for a line that is no tier or whose GPU is not in the table.
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

// FindTier is [Find] with the machine around the GPU: that of tiers.tsv, or a common one if tiers.tsv does not name the GPU.
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
