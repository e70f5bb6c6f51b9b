package arch

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"

	"leat/decompose/pack"
	"leat/gguf"
)

// Hyper holds a model's hyperparameters under their GGUF names.
type Hyper struct {
	Architecture      string
	ContextLength     int     // Tmax: tokens the model was trained to hold
	EmbeddingLength   int     // D
	BlockCount        int     // L
	FeedForwardLength int     // F
	HeadCount         int     // H
	HeadCountKV       int     // Hkv
	KeyLength         int     // Dk
	ValueLength       int     // Dv
	VocabSize         int     // V: rows of the output matrix
	RMSEpsilon        float32 //
	AttentionScale    float32 // on scores
	Latent            Latent
	Net               DeltaNet
	GatedQuery        bool // queries come with gates for what comes of them
	Window            int  // positions that layers with a window see; 0: there are none
	WindowPeriod      int  // of so many layers the last one sees all positions; 0: every layer does
	Rope              Rope
	Tied              bool // the output matrix is token_embd
	Experts           Mixture

	Notes []string // what of the file is left out, and doesn't change the logits

	predicting int   // layers after the last that predict further tokens
	as         []int // layer of the model that a layer works as; nil: each as itself
}

// View is the model with other layers: its layer i works as the model's layer as[i].
func (h *Hyper) View(as []int) *Hyper {
	v := *h
	v.BlockCount, v.as = len(as), as
	return &v
}

// number is what a layer's number says of how it works.
func (h *Hyper) number(l int) int {
	if h.as == nil {
		return l
	}
	return h.as[l]
}

// UnsupportedError says what about a model we cannot run.
type UnsupportedError struct{ What, Have, Want string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s %s is not supported", e.What, e.Have)
}

// Hint names what would be accepted.
func (e *UnsupportedError) Hint() string {
	if e.Want == "" {
		return ""
	}
	return "supported: " + e.Want
}

// Unwrap makes errors.Is(err, errors.ErrUnsupported) true.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// family describes how the architectures differ from one another.
type family struct {
	neox    bool       // rope pairs (i, i+Dr/2) instead of (2i, 2i+1)
	qkNorm  bool       // RMS norm over each query and key head before rope
	mayNorm bool       // qkNorm where the file has it
	moe     *gate      // its layers may have experts
	norm    string     // before the FFN; "": ffn_norm
	window  int        // WindowPeriod; 0: what the file says of a window is not looked at
	gated   bool       // GatedQuery
	net     *netFamily // its layers have delta nets
	latent  bool       // attention is of latents
	sinks   bool       // attention has them
	exact   bool       // YaRN's range is not rounded to whole pairs
}

func (f family) ffnNorm() string {
	if f.norm != "" {
		return f.norm
	}
	return "ffn_norm"
}

var families = map[string]family{
	"llama":     {moe: &gate{normalise: true}}, // with experts: Mixtral
	"mistral":   {},                            // written as llama by the usual converters; some files carry the name
	"qwen2":     {neox: true},
	"qwen3":     {neox: true, qkNorm: true},
	"deepseek2": {moe: &gate{}, latent: true},                                                                           // DeepSeek-V2 and V3, and Kimi K2
	"glm4moe":   {neox: true, mayNorm: true, moe: &gate{gating: Sigmoid, normalise: true}, norm: "post_attention_norm"}, // GLM-4.5 and on
	"gpt-oss":   {neox: true, moe: &gate{gating: Late, clamped: true}, norm: "post_attention_norm", window: 2, sinks: true, exact: true},
	"qwen35moe": {neox: true, qkNorm: true, moe: &gate{normalise: true}, norm: "post_attention_norm", gated: true, net: &netFamily{tiled: true}},
	"qwen3next": {neox: true, qkNorm: true, moe: &gate{normalise: true}, norm: "post_attention_norm", gated: true, net: &netFamily{together: true}},
	"qwen2moe":  {neox: true, moe: &gate{}},
	"qwen3moe":  {neox: true, qkNorm: true, moe: &gate{normalise: true}},
}

// Supported lists the architectures this build runs.
func Supported() []string {
	names := make([]string, 0, len(families))
	for n := range families {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Read takes the hyperparameters from a model's metadata and checks them against
// the shapes of its tensors, so that later code may trust both. A model with keys or
// tensors that change what it computes, and that no operation here uses, is refused.
func Read(m *pack.Model) (*Hyper, error) {
	name, err := architecture(m.Metadata)
	if err != nil {
		return nil, err
	}
	k := newKeys(m.Metadata, name)
	h, err := readHyper(k, families[name])
	if err != nil {
		return nil, err
	}
	if err := k.audit(h); err != nil {
		return nil, err
	}
	return h, h.bind(m)
}

// architecture is the name of a family.
func architecture(md *gguf.Metadata) (string, error) {
	const key = "general.architecture"
	name, ok := md.String(key)
	if v, there := md.Get(key); there && !ok {
		return "", fmt.Errorf("read hyperparameters: key %q: found %s, wanted a string", key, gguf.TypeName(v))
	}
	if _, known := families[name]; !known {
		return "", &UnsupportedError{What: "architecture", Have: fmt.Sprintf("%q", name), Want: strings.Join(Supported(), ", ")}
	}
	return name, nil
}

func readHyper(k *keys, fam family) (*Hyper, error) {
	h := &Hyper{
		Architecture:    k.arch,
		ContextLength:   k.int("context_length", -1),
		EmbeddingLength: k.int("embedding_length", -1),
		BlockCount:      k.int("block_count", -1),
		HeadCount:       k.int("attention.head_count", -1),
		RMSEpsilon:      float32(k.float("attention.layer_norm_rms_epsilon", 1e-5)),
	}
	wide := -1
	if fam.moe != nil { // where all layers have experts a file may leave it out
		if wide = k.int("expert_feed_forward_length", 0); wide == 0 {
			wide = -1
		}
	}
	h.FeedForwardLength = k.int("feed_forward_length", wide)
	h.HeadCountKV = k.int("attention.head_count_kv", h.HeadCount)
	h.predicting = k.int("nextn_predict_layers", 0) // these predict further tokens, and are not part of the forward pass
	h.BlockCount -= h.predicting
	if fam.moe != nil {
		h.Experts = readMixture(k, *fam.moe, h.FeedForwardLength)
	} else if n := k.int("expert_count", 0); n > 0 {
		return nil, &UnsupportedError{What: "mixture of experts", Have: fmt.Sprintf("%q with %d experts", k.arch, n), Want: "dense ones"}
	}
	if k.err != nil {
		return nil, k.err
	}
	if err := h.checkCounts(); err != nil {
		return nil, err
	}
	head := h.EmbeddingLength / h.HeadCount
	h.KeyLength = k.int("attention.key_length", head)
	h.ValueLength = k.int("attention.value_length", h.KeyLength)
	h.Rope = readRope(k, h.KeyLength, h.ContextLength, fam.neox)
	h.Rope.Exact = fam.exact
	h.AttentionScale = float32(1 / math.Sqrt(float64(h.KeyLength)))
	h.GatedQuery = fam.gated
	if fam.net != nil {
		h.Net = readDeltaNet(k, *fam.net)
	}
	if fam.latent {
		readLatent(k, h)
	}
	if fam.window > 0 {
		h.Window, h.WindowPeriod = k.int("attention.sliding_window", -1), fam.window
	}
	if k.err != nil {
		return nil, k.err
	}
	return h, h.checkHeads()
}

func (h *Hyper) checkCounts() error {
	for _, c := range []struct {
		key string
		v   int
	}{
		{"context_length", h.ContextLength}, {"embedding_length", h.EmbeddingLength}, {"block_count", h.BlockCount},
		{"feed_forward_length", h.FeedForwardLength}, {"attention.head_count", h.HeadCount}, {"attention.head_count_kv", h.HeadCountKV},
	} {
		if c.v < 1 {
			return fmt.Errorf("read hyperparameters: key %q: found %d, wanted at least 1", h.Architecture+"."+c.key, c.v)
		}
	}
	if h.HeadCount%h.HeadCountKV != 0 {
		return fmt.Errorf("read hyperparameters: %d query heads are not a multiple of %d key/value heads", h.HeadCount, h.HeadCountKV)
	}
	if !(h.RMSEpsilon > 0) || h.RMSEpsilon > 1 {
		return fmt.Errorf("read hyperparameters: key %q: found %g, wanted a small positive number", h.Architecture+".attention.layer_norm_rms_epsilon", h.RMSEpsilon)
	}
	return nil
}

// maxKey and maxValue are the largest head sizes the attention kernels hold.
const maxKey, maxValue = 576, 512

func (h *Hyper) checkHeads() error {
	for _, c := range []struct {
		what    string
		v, most int
	}{{"key", h.KeyLength, maxKey}, {"value", h.ValueLength, maxValue}} {
		if c.v < 8 || c.v%8 != 0 || c.v > c.most {
			return &UnsupportedError{What: c.what + " head size", Have: fmt.Sprint(c.v), Want: fmt.Sprintf("multiples of 8 up to %d", c.most)}
		}
	}
	return nil
}
