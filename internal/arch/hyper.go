package arch

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"leat/decompose/pack"
	"leat/gguf"
)

// Hyper holds a model's hyperparameters under their GGUF names. What may differ from layer to layer is in Layers.
type Hyper struct {
	Architecture     string       // name of the architecture, a key of families
	ContextLength    int          // Tmax: tokens that the model was trained to hold
	EmbeddingLength  int          // D: width of the residual stream
	BlockCount       int          // L: number of layers
	VocabSize        int          // V: number of tokens, rows of the output matrix
	Layers           []LayerShape // (L) what may differ from layer to layer
	Masks            []Mask       // what attention sees, at most MaxMasks: LayerShape.Mask is an index; the first is the zero Mask
	Ropes            []Rope       // rotary position embeddings, at most MaxRopes: LayerShape.Rope is an index
	RMSEpsilon       float32      // added to the mean square in RMS norms
	NormEpsilon      float32      // added to the variance in layer norms
	EmbeddingScale   float32      // factor of the embeddings of tokens; 1: none
	ResidualScale    float32      // factor of what layers add to the residual stream; 1: none
	LogitScale       float32      // factor of the logits; 1: none
	LogitSoftCap     float32      // bound of the logits, approached by tanh; 0: none
	AttentionScale   float32      // factor of attention's scores
	AttentionSoftCap float32      // bound of attention's scores, approached by tanh; 0: none
	Encoder          bool         // the model has no output matrix and makes hidden states; its rows also see later positions, by their masks
	Pooling          Pooling      // how the file's author makes one vector of a text's hidden states
	Dense            []Dense      // what the vector of a text passes through after pooling
	TokenTypes       int          // rows of token_types, if the architecture has this tensor: its first row is added to each embedding
	SiLU             bool         // the gate of the FFN goes through silu where the architecture usually has gelu
	Positions        int          // positions that have an embedding of their own, which AddRows adds; 0: the model has no such embeddings
	RowScale         RowScale     // factor of queries by position, if the model has one
	ALiBi            float64      // attention.max_alibi_bias: the least slope is 2^-ALiBi, see [Hyper.Slopes]; 0: the model does not use ALiBi
	ClampQKV         float32      // queries, keys and values are at least -ClampQKV and at most ClampQKV; 0: they have no bounds
	ValueScale       float32      // factor of attention's output; 1: none
	Parallel         bool         // FFN and attention read the same rows of the residual stream, where the architecture leaves it to the file
	Latent           Latent       // multi-head latent attention, if the model has it
	LayerInput       LayerInput   // inputs that layers have of their own, if the model has them
	Indexer          Indexer      // indexer of attention, if the model has one
	Delta            DeltaNet     // gated delta nets, if the model has them
	Mamba            Mamba        // Mamba, if the model has it
	ShortConvTaps    int          // positions that short convolutions see; 0: the model has none
	Tied             bool         // the output matrix is token_embd
	Experts          Mixture      // mixture of experts, if the model has one

	Notes []string // sentences for the user: keys and tensors of the file that leat does not use, and such as it lacks and other files have, with what is assumed

	predictionLayers int             // number of layers after the last that predict further tokens; leat does not run them
	touched          [NumValues]bool // values that operations of a layer, or before the layers, read or write
}

// View is the model with other layers, for a trial run of a few of them: its layer i is the model's layer as[i]. A layer may occur more than once. h is not changed.
func (h *Hyper) View(as []int) *Hyper {
	v := *h
	v.BlockCount, v.Layers = len(as), make([]LayerShape, len(as))
	for i, l := range as {
		v.Layers[i] = h.Layers[l]
	}
	relend(&v, as)
	return &v
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

// Read reads the hyperparameters from a model's metadata and checks them against
// the shapes of its tensors, so that later code may trust both. It refuses a model with keys or
// tensors that would change the logits and that no operation reads. The error is an [*UnsupportedError]
// for what leat does not run, an [*UnreadError] for tensors that no operation reads, and else
// says which key or tensor is missing or wrong.
func Read(m *pack.Model) (*Hyper, error) {
	name, err := architecture(m.Metadata)
	if err != nil {
		return nil, err
	}
	k := newKeys(m.Metadata, name)
	k.shape = func(tensor string) []int64 {
		if t, _, ok := m.Tensor(tensor); ok {
			return t.Shape
		}
		return nil
	}
	h, err := readHyper(k, families[name])
	if err != nil {
		return nil, err
	}
	if err := k.audit(h); err != nil {
		return nil, err
	}
	noteUsual(k, h, m)
	return h, h.bind(m)
}

// architecture is the name of the file's architecture, one of families.
func architecture(md *gguf.Metadata) (string, error) {
	const key = "general.architecture"
	name, ok := md.String(key)
	switch v, found := md.Get(key); {
	case !found:
		return "", fmt.Errorf("read hyperparameters: key %q is missing", key)
	case !ok:
		return "", fmt.Errorf("read hyperparameters: key %q: found %s, wanted a string", key, gguf.TypeName(v))
	}
	if _, known := families[name]; !known {
		return "", &UnsupportedError{What: "architecture", Have: fmt.Sprintf("%q", name), Want: strings.Join(Supported(), ", ")}
	}
	return name, nil
}

// maxLayers is the most layers of a model.
const maxLayers = 1 << 14

// readHyper reads the keys of an architecture, and checks them against each other.
func readHyper(k *keys, fam family) (*Hyper, error) {
	h := &Hyper{
		Architecture:    k.arch,
		ContextLength:   k.atLeastOne("context_length"),
		EmbeddingLength: k.atLeastOne("embedding_length"),
		Masks:           []Mask{{}}, EmbeddingScale: 1, ResidualScale: 1, LogitScale: 1, ValueScale: 1,
	}
	readEpsilons(k, h)
	readPooling(k, h)
	h.predictionLayers = k.int("nextn_predict_layers", 0)
	h.BlockCount = k.int("block_count", -1) - h.predictionLayers
	if h.BlockCount < 1 || h.BlockCount > maxLayers {
		k.fail("key %q: found %d, wanted 1 to %d beside %d that predict further tokens", k.arch+".block_count", h.BlockCount+h.predictionLayers, maxLayers, h.predictionLayers)
	}
	if k.err != nil {
		return nil, k.err
	}
	k.predicting = h.predictionLayers
	k.layers, h.Layers = h.BlockCount, make([]LayerShape, h.BlockCount)
	for l := range h.Layers {
		h.Layers[l].Rope = NoRope
	}
	if fam.read(k, h); k.err != nil {
		return nil, k.err
	}
	judged := k.read[k.arch+".expert_count"] // by the architecture, which may know that a file counts experts and has none
	if n := k.int("expert_count", 0); n > 0 && !judged {
		return nil, &UnsupportedError{What: "mixture of experts", Have: fmt.Sprintf("%q with %d experts", k.arch, n), Want: "dense ones"}
	}
	if n := h.StateBytes(); n > math.MaxUint32 {
		return nil, &UnsupportedError{What: "state", Have: fmt.Sprintf("of %d bytes for a sequence", n), Want: "less than 4 GiB"}
	}
	return h, k.err
}

// readEpsilons sets RMSEpsilon and NormEpsilon. A file that has one of the two keys means both.
func readEpsilons(k *keys, h *Hyper) {
	const rms, norm = "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"
	if _, _, found := k.lookUp(norm, nil); !found {
		if _, _, found = k.lookUp(rms, nil); !found {
			k.fail("keys %q and %q are missing, wanted one of them", k.arch+"."+rms, k.arch+"."+norm)
		}
	}
	h.RMSEpsilon = float32(k.float(rms, k.float(norm, 1e-5)))
	h.NormEpsilon = float32(k.float(norm, float64(h.RMSEpsilon)))
	if !(h.RMSEpsilon > 0) || h.RMSEpsilon > 1 {
		k.fail("key %q: found %g, wanted a small positive number", h.Architecture+"."+rms, h.RMSEpsilon)
	}
	if h.NormEpsilon < 0 || h.NormEpsilon > 1 {
		k.fail("key %q: found %g, wanted a small positive number", h.Architecture+"."+norm, h.NormEpsilon)
	}
}
