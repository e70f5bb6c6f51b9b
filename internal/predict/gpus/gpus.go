package gpus

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed gpus.tsv
var table string

// GPU is one line of the table.
type GPU struct {
	Name           string  `json:"name"`                    // name by which people call it
	VRAMBytes      int64   `json:"vram_bytes"`              // the most VRAM that a program can get; UMA: the usual share of MemoryBytes
	MemBytesPerSec float64 `json:"memory_bytes_per_second"` // peak bandwidth of VRAM
	FP32           float64 `json:"fp32_flops"`              // peak of the vector units, in operations a second
	BF16           float64 `json:"bf16_flops"`              // peak of the matrix units, in operations a second; FP32 if it has none
	FP4            float64 `json:"fp4_flops"`               // peak of the matrix units in FP4; 0: they have no FP4
	PCIe           int     `json:"pcie_generation"`         // generation of PCIe; 0: UMA
	Lanes          int     `json:"pcie_lanes"`              // PCIe lanes that the card is wired for; 0: UMA
	UMA            bool    `json:"uma"`                     // GPU and CPU share one memory
	MemoryBytes    int64   `json:"memory_bytes,omitempty"`  // UMA: size of the shared memory in the largest common machine; 0: not UMA
	P2P            bool    `json:"p2p"`                     // it can read from NVMe to VRAM past the CPU
	Source         string  `json:"source"`                  // what the figures were checked against, see gpus.tsv
}

// Matrices reports whether products of many rows run on matrix units.
func (g *GPU) Matrices() bool { return g.BF16 > g.FP32 }

// All lists the GPUs of the table, in its order.
func All() []GPU {
	var all []GPU
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if g, err := parse(strings.Split(line, "\t")); err == nil { // a test holds that each line is
			all = append(all, g)
		}
	}
	return all
}

// parse makes a GPU of the fields of a line of the table.
func parse(f []string) (g GPU, err error) {
	if len(f) != 10 {
		return g, fmt.Errorf("found %d fields, wanted 10", len(f))
	}
	num := func(s string) (x float64) {
		x, e := strconv.ParseFloat(s, 64)
		if e != nil && err == nil {
			err = e
		}
		return x
	}
	g = GPU{Name: f[0], VRAMBytes: int64(num(f[1]) * (1 << 30)), MemBytesPerSec: num(f[2]) * 1e9, FP32: num(f[3]) * 1e12,
		BF16: num(f[4]) * 1e12, FP4: num(f[5]) * 1e12, UMA: f[6] == "-", P2P: f[8] == "yes", Source: f[9]}
	if g.BF16 == 0 {
		g.BF16 = g.FP32
	}
	if g.UMA {
		g.MemoryBytes = int64(num(f[7]) * (1 << 30))
	} else {
		g.PCIe, g.Lanes = int(num(f[6])), int(num(f[7]))
	}
	return g, err
}

// RAMBytes is the RAM that a machine with this GPU commonly has; UMA: all of the shared memory.
func (g *GPU) RAMBytes() int64 {
	if g.UMA {
		return g.MemoryBytes
	}
	return commonRAM
}

// PCIeBytesPerSec is the peak of the PCIe link in one direction, its line code taken off; 0: UMA.
func (g *GPU) PCIeBytesPerSec() float64 {
	perLane := map[int]float64{3: 0.985e9, 4: 1.969e9, 5: 3.938e9}
	return perLane[g.PCIe] * float64(g.Lanes)
}

// NotFoundError says that a name fits no GPU of the table, or more than one.
type NotFoundError struct {
	Name  string   // the name that was asked for
	Near  []string // if it fits none: names of the most similar GPUs
	Among []string // if it fits several: names of all of them
}

// Error says which name fits no GPU, or how many it fits.
func (e *NotFoundError) Error() string {
	if len(e.Among) > 0 {
		return fmt.Sprintf("GPU %q: %d known ones are called so", e.Name, len(e.Among))
	}
	return fmt.Sprintf("GPU %q is not known", e.Name)
}

// Hint names the GPUs that were likely meant.
func (e *NotFoundError) Hint() string {
	if len(e.Among) > 0 {
		return "one of: " + strings.Join(e.Among, ", ")
	}
	return "did you mean: " + strings.Join(e.Near, ", ") + "? One that is not in the list is described by --vram, --mem-gbps, --tflops and --link-gbps beside the most similar one's name"
}

// Find looks a GPU up by any part of its name that fits one GPU: "4090", "rtx4060ti
// 16gb". Of several GPUs that fit, it takes the one whose name has the fewest further words: "RTX 4090" is not the laptop's. A name that says
// more than the table's, "NVIDIA GeForce RTX 3060 Lite Hash Rate", finds what [within] finds. The error is a [*NotFoundError].
func Find(name string) (GPU, error) {
	want := words(name)
	var fit []GPU
	least := 1 << 30
	for _, g := range All() {
		extra, ok := over(words(g.Name), want)
		switch {
		case !ok || extra > least:
			continue
		case extra < least:
			fit, least = nil, extra
		}
		fit = append(fit, g)
	}
	switch {
	case len(want) > 0 && len(fit) == 1:
		return fit[0], nil
	case len(want) > 0 && len(fit) > 1:
		return GPU{}, &NotFoundError{Name: name, Among: names(fit)}
	}
	if g, ok := within(want); ok {
		return g, nil
	}
	return GPU{}, &NotFoundError{Name: name, Near: near(want)}
}

// within finds the GPU with the longest name whose words are all among want, the words that were asked for: names that drivers give have more words
// than the table's.
func within(want []string) (best GPU, ok bool) {
	most := 1 // one word alone is too little
	for _, g := range All() {
		have := words(g.Name)
		if _, all := over(want, have); all && len(have) > most {
			best, ok, most = g, true, len(have)
		}
	}
	return best, ok
}

// names lists the names of gs.
func names(gs []GPU) (ns []string) {
	for _, g := range gs {
		ns = append(ns, g.Name)
	}
	return ns
}

// noise lists the words of names that tell no GPU of the table from another.
var noise = []string{"nvidia", "geforce", "amd", "intel", "radeon", "graphics", "gpu", "tm", "r", "sxm", "hbm3", "corporation", "tesla", "instinct"}

// words cuts a name where letters, digits and others meet, and drops noise: "RTX4060Ti
// 16GB" is rtx 4060 ti 16 gb.
func words(name string) (ws []string) {
	kind := func(r rune) int {
		switch {
		case r >= 'a' && r <= 'z':
			return 1
		case r >= '0' && r <= '9':
			return 2
		}
		return 0
	}
	last := 0
	for _, r := range strings.ToLower(name) {
		k := kind(r)
		if k != 0 && k != last {
			ws = append(ws, "")
		}
		if k != 0 {
			ws[len(ws)-1] += string(r)
		}
		last = k
	}
	return slices.DeleteFunc(ws, func(w string) bool { return slices.Contains(noise, w) })
}

// over reports whether have holds all words of want, and how many words it has beyond them.
func over(have, want []string) (extra int, ok bool) {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return 0, false
		}
	}
	return len(have) - len(want), true
}

// near lists the names of the four GPUs whose words differ least from want, letter by letter.
func near(want []string) []string {
	all := All()
	text := strings.Join(want, " ")
	slices.SortStableFunc(all, func(a, b GPU) int {
		return distance(strings.Join(words(a.Name), " "), text) - distance(strings.Join(words(b.Name), " "), text)
	})
	return names(all[:4])
}

// distance is the Levenshtein distance between a and b, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
