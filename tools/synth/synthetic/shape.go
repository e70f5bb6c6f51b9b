package synthetic

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is a model's hyperparameters, under the names of the GGUF keys.
type Shape struct {
	BlockCount              int
	EmbeddingLength         int
	HeadCount               int
	HeadCountKV             int
	KeyLength               int // of a head, and the value's too
	FeedForwardLength       int
	ExpertCount             int // 0: dense
	ExpertUsedCount         int
	ExpertFeedForwardLength int
	VocabSize               int
	ContextLength           int
	RopeFreqBase            float64
	RopeFactor              float64 // of Llama 3's rope_freqs; 0: no such tensor
	TiedEmbeddings          bool    // no output.weight
}

const maxShards = 1000

type preset struct {
	arch, name string
	shape      Shape
}

// The shapes of published models. "tiny" ones are for tests.
var presets = []preset{
	{"llama", "8b", Shape{32, 4096, 32, 8, 128, 14336, 0, 0, 0, 128256, 131072, 5e5, 8, false}},
	{"llama", "70b", Shape{80, 8192, 64, 8, 128, 28672, 0, 0, 0, 128256, 131072, 5e5, 8, false}},
	{"llama", "1b", Shape{16, 2048, 32, 8, 64, 8192, 0, 0, 0, 128256, 131072, 5e5, 32, true}},
	{"llama", "tiny", Shape{4, 256, 4, 2, 64, 512, 0, 0, 0, 512, 2048, 1e4, 0, false}},
	{"mixtral", "8x7b", Shape{32, 4096, 32, 8, 128, 14336, 8, 2, 14336, 32000, 32768, 1e6, 0, false}},
	{"mixtral", "tiny", Shape{4, 256, 8, 4, 32, 512, 4, 2, 512, 512, 2048, 1e6, 0, false}},
	{"qwen2", "7b", Shape{28, 3584, 28, 4, 128, 18944, 0, 0, 0, 152064, 32768, 1e6, 0, false}},
	{"qwen2", "0.5b", Shape{24, 896, 14, 2, 64, 4864, 0, 0, 0, 151936, 32768, 1e6, 0, true}},
	{"qwen2", "tiny", Shape{4, 256, 8, 4, 32, 512, 0, 0, 0, 512, 2048, 1e6, 0, true}},
	{"qwen3", "8b", Shape{36, 4096, 32, 8, 128, 12288, 0, 0, 0, 151936, 40960, 1e6, 0, false}},
	{"qwen3", "32b", Shape{64, 5120, 64, 8, 128, 25600, 0, 0, 0, 151936, 40960, 1e6, 0, false}},
	{"qwen3", "0.6b", Shape{28, 1024, 16, 8, 128, 3072, 0, 0, 0, 151936, 40960, 1e6, 0, true}},
	{"qwen3", "tiny", Shape{4, 256, 8, 4, 64, 512, 0, 0, 0, 512, 2048, 1e6, 0, false}},
	{"qwen3moe", "30b-a3b", Shape{48, 2048, 32, 4, 128, 6144, 128, 8, 768, 151936, 40960, 1e6, 0, false}},
	{"qwen3moe", "tiny", Shape{4, 256, 8, 4, 64, 512, 8, 2, 256, 512, 2048, 1e6, 0, false}},
}

// Arches lists the architectures that can be written. A mixtral file says llama, as
// published ones do.
func Arches() []string { return []string{"llama", "mixtral", "qwen2", "qwen3", "qwen3moe"} }

// Presets lists the presets as "arch/name".
func Presets() []string {
	var s []string
	for _, p := range presets {
		s = append(s, p.arch+"/"+p.name)
	}
	return s
}

// findPreset looks for arch's own preset of that name, else for the first that has the
// name: -arch qwen2 -preset 70b is a Llama 70B with biases. A name may say whose it is, as
// Presets does.
func findPreset(arch, name string) (preset, error) {
	var other *preset
	for i, p := range presets {
		if p.arch+"/"+p.name == name {
			return p, nil
		}
		if p.name != name {
			continue
		}
		if p.arch == arch {
			return p, nil
		}
		if other == nil {
			other = &presets[i]
		}
	}
	if other == nil {
		return preset{}, fmt.Errorf("preset: found %q, want one of %s", name, strings.Join(Presets(), ", "))
	}
	return *other, nil
}

// settle fills in what the preset and the defaults give, and checks the whole.
func (o Options) settle() (Options, error) {
	if o.Preset == "" {
		o.Preset = "tiny"
	}
	p, err := findPreset(o.Arch, o.Preset)
	if err != nil {
		return o, err
	}
	if o.Arch == "" {
		o.Arch = p.arch
	}
	if !slices.Contains(Arches(), o.Arch) {
		return o, fmt.Errorf("architecture: found %q, want one of %s", o.Arch, strings.Join(Arches(), ", "))
	}
	if o.Type == "" {
		o.Type = "q4_k_m"
	}
	if o.Shards == 0 {
		o.Shards = 1
	}
	if o.poolBytes == 0 {
		o.poolBytes = defaultPoolBytes
	}
	if o.Shards < 1 || o.Shards > maxShards {
		return o, fmt.Errorf("shards: found %d, want 1 to %d", o.Shards, maxShards)
	}
	o.Shape = o.Shape.over(p.shape, o.Arch)
	return o, o.Shape.validate(o.Arch)
}

// over takes from base what s leaves open.
func (s Shape) over(base Shape, arch string) Shape {
	narrowed := s.EmbeddingLength != 0 || s.HeadCount != 0
	for _, f := range []struct{ have, base *int }{
		{&s.BlockCount, &base.BlockCount}, {&s.EmbeddingLength, &base.EmbeddingLength},
		{&s.HeadCount, &base.HeadCount}, {&s.HeadCountKV, &base.HeadCountKV},
		{&s.FeedForwardLength, &base.FeedForwardLength}, {&s.VocabSize, &base.VocabSize},
		{&s.ContextLength, &base.ContextLength}, {&s.ExpertCount, &base.ExpertCount},
		{&s.ExpertUsedCount, &base.ExpertUsedCount},
	} {
		if *f.have == 0 {
			*f.have = *f.base
		}
	}
	if s.KeyLength == 0 {
		s.KeyLength = base.KeyLength
		if narrowed && !strings.HasPrefix(arch, "qwen3") && s.HeadCount > 0 {
			s.KeyLength = s.EmbeddingLength / s.HeadCount // these have no key length of their own
		}
	}
	if s.ExpertFeedForwardLength == 0 {
		s.ExpertFeedForwardLength = base.ExpertFeedForwardLength
		if arch == "mixtral" {
			s.ExpertFeedForwardLength = s.FeedForwardLength
		}
	}
	if s.RopeFreqBase == 0 {
		s.RopeFreqBase = base.RopeFreqBase
	}
	if s.RopeFactor == 0 && arch == "llama" {
		s.RopeFactor = base.RopeFactor
	}
	s.TiedEmbeddings = s.TiedEmbeddings || base.TiedEmbeddings
	if !hasExperts(arch) {
		s.ExpertCount, s.ExpertUsedCount, s.ExpertFeedForwardLength = 0, 0, 0
	}
	return s
}

func hasExperts(arch string) bool { return arch == "mixtral" || arch == "qwen3moe" }

func (s Shape) validate(arch string) error {
	for _, f := range []struct {
		name string
		v    int
	}{
		{"layers", s.BlockCount}, {"width", s.EmbeddingLength}, {"heads", s.HeadCount}, {"key/value heads", s.HeadCountKV},
		{"head size", s.KeyLength}, {"FFN width", s.FeedForwardLength}, {"context", s.ContextLength},
	} {
		if f.v < 1 || f.v > 1<<24 {
			return fmt.Errorf("%s: found %d, want 1 to %d", f.name, f.v, 1<<24)
		}
	}
	if s.HeadCount%s.HeadCountKV != 0 {
		return fmt.Errorf("heads: found %d for %d key/value heads, want a multiple", s.HeadCount, s.HeadCountKV)
	}
	if s.KeyLength%2 != 0 {
		return fmt.Errorf("head size: found %d, want an even number", s.KeyLength)
	}
	if s.VocabSize < minVocab || s.VocabSize > 1<<24 {
		return fmt.Errorf("vocabulary: found %d tokens, want %d to %d", s.VocabSize, minVocab, 1<<24)
	}
	if hasExperts(arch) && (s.ExpertUsedCount < 1 || s.ExpertUsedCount > s.ExpertCount || s.ExpertCount > 1<<16 || s.ExpertFeedForwardLength < 1) {
		return fmt.Errorf("experts: found %d of %d used, %d wide; want at least 1 of each and no more used than there are",
			s.ExpertUsedCount, s.ExpertCount, s.ExpertFeedForwardLength)
	}
	return nil
}
