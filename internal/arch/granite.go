package arch

// readGranite reads the keys of Granite 1 to 3, with or without experts. rope.scaling.finetuned says whether queries and keys are rotated.
func readGranite(k *keys, h *Hyper) {
	withExperts(adjacent, mixtureDefaults{normalise: true})(k, h)
	readGraniteScales(k, h)
	if !k.bool("rope.scaling.finetuned", true) {
		for l := range h.Layers {
			h.Layers[l].Rope = NoRope
		}
	}
}

// readGraniteScales reads the factors of Granite: of embeddings, of what layers add to the residual stream and of attention's scores, and the divisor of the logits. 0
// means that the file does not use the factor.
func readGraniteScales(k *keys, h *Hyper) {
	h.EmbeddingScale, h.ResidualScale = k.factor("embedding_scale", 1), k.factor("residual_scale", 1)
	h.AttentionScale, h.LogitScale = k.factor("attention.scale", h.AttentionScale), 1/k.factor("logit_scale", 1)
}
