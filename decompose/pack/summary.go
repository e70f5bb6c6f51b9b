package pack

import (
	"math"
	"slices"
	"strconv"

	"leat/gguf"
)

// Summarize fills a manifest's figures from a GGUF's metadata and units. Files stay as they are.
func (m *Manifest) Summarize(md *gguf.Metadata, units []Unit) {
	m.FormatVersion = FormatVersion
	m.Architecture = md.Architecture()
	m.Model, _ = md.String("general.name")
	m.NumLayers = figure(md, "block_count")
	m.HiddenDim = figure(md, "embedding_length")
	m.NumHeads = figure(md, "attention.head_count")
	m.NumKVHeads = figure(md, "attention.head_count_kv")
	if m.NumKVHeads == 0 {
		m.NumKVHeads = m.NumHeads
	}
	m.HeadDim = figure(md, "attention.key_length")
	if m.HeadDim == 0 && m.NumHeads > 0 {
		m.HeadDim = m.HiddenDim / m.NumHeads
	}
	m.IntermediateDim = figure(md, "feed_forward_length")
	m.MaxContext = figure(md, "context_length")
	m.RopeTheta = real(md, "rope.freq_base")
	m.RMSNormEps = real(md, "attention.layer_norm_rms_epsilon")
	m.NumExperts = figure(md, "expert_count")
	m.NumExpertsUsed = figure(md, "expert_used_count")
	m.Quantization = quantization(md, units)
	m.VocabSize = vocabSize(md, units)
	m.TiedEmbeddings = !slices.ContainsFunc(units, func(u Unit) bool { return u.Kind == Head })
}

// figure is an integer of the model's architecture; of one given per layer, the largest; else 0.
func figure(md *gguf.Metadata, key string) int64 {
	key = md.Architecture() + "." + key
	if n, ok := md.Int(key); ok {
		return n
	}
	if ns, ok := md.Ints(key); ok && len(ns) > 0 {
		return slices.Max(ns)
	}
	return 0
}

// real is a float of the model's architecture, as short as the float32 it was; else 0.
func real(md *gguf.Metadata, key string) float64 {
	x, ok := md.Float(md.Architecture() + "." + key)
	if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0 // JSON can't hold them
	}
	return shortest(x)
}

func vocabSize(md *gguf.Metadata, units []Unit) int64 {
	for i := range units {
		if t, ok := units[i].Tensor("token_embd.weight"); ok && len(t.Shape) == 2 {
			return t.Shape[0]
		}
	}
	tokens, _ := md.Strings("tokenizer.ggml.tokens")
	return int64(len(tokens))
}

// quantization is the file's own word for it, or the type that most bytes have.
func quantization(md *gguf.Metadata, units []Unit) string {
	if n, ok := md.Int("general.file_type"); ok {
		if name := gguf.FileTypeName(n); name != "" {
			return name
		}
	}
	sum := map[gguf.Type]int64{}
	var most gguf.Type
	for i := range units {
		for _, t := range units[i].Tensors {
			sum[t.Type] += t.Bytes
			if sum[t.Type] > sum[most] {
				most = t.Type
			}
		}
	}
	return most.String()
}

// shortest writes 1e-06 where the float32 says so, not its 17 digits as a float64.
func shortest(x float64) float64 {
	if float64(float32(x)) != x {
		return x
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', -1, 32), 64)
	if err != nil {
		return x
	}
	return short
}
