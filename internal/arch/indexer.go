package arch

// Indexer is the hyperparameters of an attention's indexer (DeepSeek-V3.2), which chooses the Top positions that a row's attention sees; Top 0: the model has none. In a
// context of at most Top positions it would choose all of them. leat has no indexer, computes attention over all positions, and so runs contexts of at most Top.
type Indexer struct {
	Heads     int // heads of the indexer's queries
	KeyLength int // size of a query and of a key
	Top       int // positions that a row's attention sees at most
}

// readDeepSeek32 reads the keys of DeepSeek-V3.2: those of V3, and those of its indexer.
func readDeepSeek32(k *keys, h *Hyper) {
	readDeepSeek2(k, h)
	readIndexer(k, h)
}

// readGLMDSA reads the keys of GLM-5.
func readGLMDSA(k *keys, h *Hyper) {
	withExperts(adjacent, mixtureDefaults{gating: Sigmoid})(k, h)
	if k.err == nil {
		readLatent(k, h)
	}
	readIndexer(k, h)
}

// readIndexer reads the keys of an indexer.
func readIndexer(k *keys, h *Hyper) {
	h.Indexer = Indexer{Heads: k.atLeastOne("attention.indexer.head_count"), KeyLength: k.atLeastOne("attention.indexer.key_length"), Top: k.atLeastOne("attention.indexer.top_k")}
}

// allowIndexer allows the tensors of the indexer of layer l, which no operation reads.
func (b *binding) allowIndexer(l int) {
	x, d := &b.h.Indexer, b.h.EmbeddingLength
	if x.Top == 0 {
		return
	}
	b.allow(l, "indexer.attn_q_b.weight", nil, x.Heads*x.KeyLength, b.h.Latent.QueryRank)
	b.allow(l, "indexer.attn_k.weight", nil, x.KeyLength, d)
	b.allow(l, "indexer.proj.weight", nil, x.Heads, d)
	b.allow(l, "indexer.k_norm.weight", f32s, x.KeyLength)
	b.allow(l, "indexer.k_norm.bias", f32s, x.KeyLength)
}
