package arch

import "sort"

// family is how the models of one architecture are read and computed.
type family struct {
	read   func(k *keys, h *Hyper) // reads the keys that not all architectures have, and fills in Hyper.Layers; k keeps the error
	layer  func(p *program)        // adds the operations of a layer
	input  func(p *program)        // adds operations on X before the first layer, after those that all architectures have; nil: none
	output func(p *program)        // adds operations after the last layer that make Hidden of X; nil: the RMS norm output_norm
	old    map[string]string       // names of tensors that only files of old converters have, and the files that leat takes instead
}

// families are the architectures that leat runs, by general.architecture.
var families = map[string]family{
	// Like llama.
	"llama":         {read: readLlama, layer: llama}, // with experts: Mixtral
	"mistral":       {read: readLlama, layer: llama}, // written as llama by the usual converters; some files carry the name
	"ernie4_5":      {read: withDenseFFN(adjacent), layer: llama},
	"qwen2":         {read: withDenseFFN(halves), layer: llama},
	"qwen2vl":       {read: withDenseFFN(halves), layer: llama}, // Qwen2-VL and Qwen2.5-VL, on text
	"qwen3":         {read: withDenseFFN(halves), layer: qwen3},
	"qwen3vl":       {read: withDenseFFN(halves), layer: qwen3}, // on text
	"seed_oss":      {read: withDenseFFN(halves), layer: seedOSS},
	"smollm3":       {read: readSmolLM3, layer: llama},
	"hunyuan-dense": {read: withDenseFFN(halves), layer: hunyuan},
	"exaone4":       {read: readEXAONE4, layer: exaone4},
	"phi3":          {read: readPhi3, layer: phi3},
	"glm4":          {read: withDenseFFN(adjacent), layer: glm4},
	"olmo2":         {read: readOLMo2, layer: olmo2},
	"mistral3":      {read: readMistral3, layer: mistral3},
	"granite":       {read: readGranite, layer: llama},
	"minicpm3":      {read: readMiniCPM3, layer: miniCPM3},
	"arcee":         {read: withDenseFFN(adjacent), layer: arcee},
	"apertus":       {read: readApertus, layer: apertus},

	// With layer norms.
	"gpt2":       {read: readNoRope, layer: layerNormed(GELU), input: addPositions, output: normOutput},
	"starcoder":  {read: readNoRope, layer: layerNormed(GELU), input: addPositions, output: normOutput},
	"bloom":      {read: readBLOOM, layer: layerNormed(GELU), input: normEmbeddings, output: normOutput},
	"starcoder2": {read: readStarCoder2, layer: layerNormed(GELU), output: normOutput},
	"gptneox":    {read: readGPTNeoX, layer: gptNeoX, output: normOutput}, // GPT-NeoX and Pythia
	"nemotron":   {read: withDenseFFN(halves), layer: layerNormed(ReLU2), output: normOutput},
	"jais2":      {read: withDenseFFN(halves), layer: layerNormed(ReLU2), output: normOutput},
	"stablelm":   {read: readStableLM, layer: stableLM, output: normOutput},
	"olmo":       {read: readOLMo, layer: olmo, output: normOutputPlainly},
	"phi2":       {read: readPhi2, layer: phi2, output: normOutput},
	"falcon":     {read: withDenseFFN(halves), layer: falcon, output: normOutput},
	"command-r":  {read: readCohere, layer: cohere, output: normOutput},
	"cohere2":    {read: readCohere2, layer: cohere, output: normOutput},

	// Encoders.
	"bert":            {read: readBERT, layer: bert, input: bertInput, output: lastStates}, // also XLM-RoBERTa, and most models for embeddings of some years
	"modern-bert":     {read: readModernBERT, layer: modernBERT, input: normEmbeddings, output: normOutput},
	"gemma-embedding": {read: readGemmaEmbedding, layer: gemma3},

	// Gemma, and others whose layers are like it.
	"afmoe":  {read: readAFMoE, layer: afmoe}, // Arcee's Trinity
	"gemma":  {read: readGemma, layer: gemma},
	"gemma2": {read: readGemma2, layer: gemma2},
	"gemma3": {read: readGemma3, layer: gemma3},
	"gemma4": {read: readGemma4, layer: gemma4, input: makeLayerInputs},

	// With experts.
	"deepseek2":    {read: readDeepSeek2, layer: deepSeek2, old: oldLatents},  // DeepSeek-V2 and V3, and Kimi K2
	"deepseek32":   {read: readDeepSeek32, layer: deepSeek2, old: oldLatents}, // DeepSeek-V3.2
	"dots1":        {read: withExperts(halves, mixtureDefaults{gating: Sigmoid}), layer: qwen3},
	"ernie4_5-moe": {read: readErnieMoE, layer: llama},
	"exaone-moe":   {read: readEXAONEMoE, layer: qwen3},                                                            // K-EXAONE
	"glm4moe":      {read: withExperts(halves, mixtureDefaults{gating: Sigmoid, normalise: true}), layer: glm4moe}, // GLM-4.5 and on
	"glm-dsa":      {read: readGLMDSA, layer: deepSeek2, old: oldLatents},                                          // GLM-5
	"gpt-oss":      {read: readGPTOSS, layer: gptOSS},
	"granitemoe":   {read: readGranite, layer: llama},
	"hunyuan-moe":  {read: withExperts(halves, mixtureDefaults{normalise: true}), layer: hunyuan},
	"llama4":       {read: readLlama4, layer: llama4},
	"mimo2":        {read: readMiMo2, layer: mimo2}, // MiMo-V2
	"minimax-m2":   {read: withExperts(halves, mixtureDefaults{gating: Sigmoid, normalise: true}), layer: olmoe},
	"olmoe":        {read: withExperts(halves, mixtureDefaults{}), layer: olmoe},
	"qwen2moe":     {read: withExperts(halves, mixtureDefaults{}), layer: llama},
	"phimoe":       {read: readPhiMoE, layer: phiMoE, output: normOutput},
	"qwen3moe":     {read: withExperts(halves, mixtureDefaults{normalise: true}), layer: qwen3},
	"qwen3vlmoe":   {read: withExperts(halves, mixtureDefaults{normalise: true}), layer: qwen3}, // on text
	"step35":       {read: readStep35, layer: step35},                                           // Step-3.5

	// With Mamba or short convolutions.
	"falcon-h1":      {read: readFalconH1, layer: falconH1},
	"granitehybrid":  {read: readGraniteHybrid, layer: graniteHybrid}, // Granite 4
	"jamba":          {read: readJamba, layer: jamba},
	"lfm2":           {read: readLFM2, layer: lfm2, output: lfm2Output},
	"lfm2moe":        {read: readLFM2, layer: lfm2, output: lfm2Output},
	"mamba":          {read: readMambaOnly, layer: mamba},
	"mamba2":         {read: readMamba2Only, layer: mamba2},
	"nemotron_h":     {read: readNemotronH, layer: nemotronH},
	"nemotron_h_moe": {read: readNemotronH, layer: nemotronH},

	// With gated delta nets.
	"kimi-linear": {read: readKimiLinear, layer: kimiLinear},
	"qwen35":      {read: readQwen35, layer: qwen3next},
	"qwen35moe":   {read: readQwen35MoE, layer: qwen3next, old: oldDeltaNets},
	"qwen3next":   {read: readQwen3Next, layer: qwen3next, old: oldDeltaNets},
}

// oldLatents is family.old of latent attention.
var oldLatents = map[string]string{"attn_kv_b": "files of newer converters, with attn_k_b and attn_v_b"}

// oldDeltaNets is family.old of delta nets.
var oldDeltaNets = map[string]string{"ssm_in": "files of newer converters, with attn_qkv and attn_gate"}

// Supported lists the architectures this build runs.
func Supported() []string {
	names := make([]string, 0, len(families))
	for n := range families {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Which values of a head rope rotates together: see [Rope.Neox].
const (
	adjacent = false
	halves   = true
)

// withDenseFFN is family.read of architectures whose layers all have attention with rope and a dense FFN.
func withDenseFFN(neox bool) func(*keys, *Hyper) {
	return func(k *keys, h *Hyper) {
		readAttention(k, h)
		k.setFeedForward(h, k.ints("feed_forward_length", nil))
		readRopes(k, h, neox)
	}
}

// withExperts is family.read of architectures whose layers all have attention with rope and a dense FFN or, from layer leading_dense_block_count on, a mixture of experts.
// Files of such an architecture may also have no experts. d is used where the file has no key.
func withExperts(neox bool, d mixtureDefaults) func(*keys, *Hyper) {
	return func(k *keys, h *Hyper) {
		readAttention(k, h)
		readMixture(k, h, d)
		readRopes(k, h, neox)
	}
}
