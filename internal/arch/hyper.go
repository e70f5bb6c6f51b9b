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
	Architecture      string   // name of the architecture, a key of families
	ContextLength     int      // Tmax: tokens that the model was trained to hold
	EmbeddingLength   int      // D: width of the residual stream
	BlockCount        int      // L: number of layers
	FeedForwardLength int      // F: inner width of the FFN
	HeadCount         int      // H: query heads
	HeadCountKV       int      // Hkv: key/value heads
	KeyLength         int      // Dk: size of a head's query and key
	ValueLength       int      // Dv: size of a head's value
	VocabSize         int      // V: number of tokens, rows of the output matrix
	RMSEpsilon        float32  // added to the mean square in RMS norms
	AttentionScale    float32  // factor of attention's scores
	Latent            Latent   // multi-head latent attention, if the model has it
	Delta             DeltaNet // gated delta nets, if the model has them
	GatedQuery        bool     // attn_q also makes a gate of attention's output for each head
	Window            int      // positions that layers with a window see; 0: no layer has a window
	WindowPeriod      int      // all but the last of each WindowPeriod layers have a window; 0: no layer has one
	Rope              Rope     // rotary position embedding
	Tied              bool     // the output matrix is token_embd
	Experts           Mixture  // mixture of experts, if the model has one

	Notes []string // sentences about keys and tensors of the file that leat does not use; the logits do not depend on them

	predictionLayers int   // number of layers after the last that predict further tokens; leat does not run them
	likeLayer        []int // for a [Hyper.View], by its layers: the model's layer that each works like; nil: h is not a View
}

// View is the model with other layers: its layer i works like the model's layer as[i].
func (h *Hyper) View(as []int) *Hyper {
	v := *h
	v.BlockCount, v.likeLayer = len(as), as
	return &v
}

// modelLayer is the number of the model's layer that layer l works like: l itself except in a [Hyper.View].
func (h *Hyper) modelLayer(l int) int {
	if h.likeLayer == nil {
		return l
	}
	return h.likeLayer[l]
}

// UnsupportedError says that leat can't run a model because of a property. What names the property, Have is its value, Want lists the values that leat
// supports, if any.
type UnsupportedError struct{ What, Have, Want string }

// Error says what is not supported.
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

// family is how an architecture's layers differ from llama's.
type family struct {
	neox    bool            // rope rotates pairs (i, i+Dr/2) instead of (2i, 2i+1)
	qkNorm  bool            // RMS norm of each query and key head before rope
	mayNorm bool            // qkNorm if the file has its tensors
	moe     *routerDefaults // defaults if layers have experts; nil: a file with experts is refused
	norm    string          // name of the norm before the FFN; "": ffn_norm
	window  int             // Hyper.WindowPeriod; 0: no layer has a window, whatever the file says
	gated   bool            // Hyper.GatedQuery
	delta   *deltaDefaults  // defaults if layers have delta nets; nil: they do not
	latent  bool            // attention is latent attention
	sinks   bool            // attention has sinks
	exact   bool            // Rope.Exact
}

// ffnNorm is the name of the norm before the FFN.
func (f family) ffnNorm() string {
	if f.norm != "" {
		return f.norm
	}
	return "ffn_norm"
}

// families are the architectures that leat runs.
var families = map[string]family{
	"llama":     {moe: &routerDefaults{normalise: true}}, // with experts: Mixtral
	"mistral":   {},                                      // written as llama by the usual converters; some files carry the name
	"qwen2":     {neox: true},
	"qwen3":     {neox: true, qkNorm: true},
	"deepseek2": {moe: &routerDefaults{}, latent: true},                                                                           // DeepSeek-V2 and V3, and Kimi K2
	"glm4moe":   {neox: true, mayNorm: true, moe: &routerDefaults{gating: Sigmoid, normalise: true}, norm: "post_attention_norm"}, // GLM-4.5 and on
	"gpt-oss":   {neox: true, moe: &routerDefaults{gating: SoftMaxChosen, clamped: true}, norm: "post_attention_norm", window: 2, sinks: true, exact: true},
	"qwen35moe": {neox: true, qkNorm: true, moe: &routerDefaults{normalise: true}, norm: "post_attention_norm", gated: true, delta: &deltaDefaults{tiled: true}},
	"qwen3next": {neox: true, qkNorm: true, moe: &routerDefaults{normalise: true}, norm: "post_attention_norm", gated: true, delta: &deltaDefaults{together: true}},
	"qwen2moe":  {neox: true, moe: &routerDefaults{}},
	"qwen3moe":  {neox: true, qkNorm: true, moe: &routerDefaults{normalise: true}},
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

// Read reads the hyperparameters from a model's metadata and checks them against
// the shapes of its tensors, so that later code may trust both. It refuses a model with keys or
// tensors that would change the logits and that no operation reads.
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

// architecture is the name of the file's architecture, one of families.
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

// readHyper reads the keys of an architecture, and checks them against each other.
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
	if fam.moe != nil { // a file whose layers all have experts may lack feed_forward_length
		if wide = k.int("expert_feed_forward_length", 0); wide == 0 {
			wide = -1
		}
	}
	h.FeedForwardLength = k.int("feed_forward_length", wide)
	h.HeadCountKV = k.int("attention.head_count_kv", h.HeadCount)
	h.predictionLayers = k.int("nextn_predict_layers", 0)
	h.BlockCount -= h.predictionLayers
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
	if fam.delta != nil {
		h.Delta = readDeltaNet(k, *fam.delta)
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

// checkCounts checks counts and lengths, before other hyperparameters are computed from them. It also checks RMSEpsilon.
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

// checkHeads checks that attention kernels take the sizes of heads.
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
