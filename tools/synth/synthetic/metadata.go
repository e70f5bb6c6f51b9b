package synthetic

import (
	"fmt"

	"leat/gguf"
)

// metadata is all a file says about the model but its tensors.
func (o Options) metadata(m mixture) (*gguf.Metadata, error) {
	s, arch := o.Shape, o.Arch
	if arch == "mixtral" {
		arch = "llama"
	}
	epsilon := float32(1e-6)
	if arch == "llama" {
		epsilon = 1e-5
	}
	md := gguf.NewMetadata()
	var err error
	set := func(key string, v any) {
		if e := md.Set(key, v); e != nil && err == nil {
			err = e
		}
	}
	of := func(key string, v any) { set(arch+"."+key, v) }
	set("general.architecture", arch)
	set("general.name", fmt.Sprintf("synthetic %s %s %s", o.Arch, o.Preset, o.Type))
	set("general.description", "random weights, written by leat's tools/synth")
	set("general.file_type", uint32(m.fileType))
	set("general.quantization_version", uint32(2))
	of("context_length", uint32(s.ContextLength))
	of("embedding_length", uint32(s.EmbeddingLength))
	of("block_count", uint32(s.BlockCount))
	of("feed_forward_length", uint32(s.FeedForwardLength))
	of("attention.head_count", uint32(s.HeadCount))
	of("attention.head_count_kv", uint32(s.HeadCountKV))
	of("attention.key_length", uint32(s.KeyLength))
	of("attention.value_length", uint32(s.KeyLength))
	of("attention.layer_norm_rms_epsilon", epsilon)
	of("rope.freq_base", float32(s.RopeFreqBase))
	of("rope.dimension_count", uint32(s.KeyLength))
	of("vocab_size", uint32(s.VocabSize))
	if s.ExpertCount > 0 {
		of("expert_count", uint32(s.ExpertCount))
		of("expert_used_count", uint32(s.ExpertUsedCount))
		if arch == "qwen3moe" {
			of("expert_feed_forward_length", uint32(s.ExpertFeedForwardLength))
		}
	}
	tokens, types := vocabulary(s.VocabSize)
	joined := make([]string, len(merges))
	for i, p := range merges {
		joined[i] = p[0] + " " + p[1]
	}
	set("tokenizer.ggml.model", "gpt2")
	set("tokenizer.ggml.pre", "qwen2")
	set("tokenizer.ggml.tokens", tokens)
	set("tokenizer.ggml.token_type", types)
	set("tokenizer.ggml.merges", joined)
	set("tokenizer.ggml.bos_token_id", uint32(s.VocabSize-3))
	set("tokenizer.ggml.eos_token_id", uint32(s.VocabSize-1))
	set("tokenizer.ggml.add_bos_token", false)
	set("tokenizer.chat_template", chatTemplate)
	return md, err
}
