package engine

import (
	"bytes"

	"leat/engine/token"
)

// Breakers lists every token whose text contains one of texts, and all control tokens, for
// sample.Params.DRYBreakers: that a line ends or a turn begins as one did before is no
// repetition. Never nil; empty for a model whose tokenizer we don't have.
func (m *Model) Breakers(texts ...string) []token.ID {
	ids := []token.ID{}
	if m.tok == nil {
		return ids
	}
	for i := range m.tok.Size() {
		id := token.ID(i)
		breaks := m.tok.IsControl(id)
		for _, text := range texts {
			breaks = breaks || text != "" && bytes.Contains(m.tok.Piece(id), []byte(text))
		}
		if breaks {
			ids = append(ids, id)
		}
	}
	return ids
}
