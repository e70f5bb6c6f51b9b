package engine

import (
	"errors"

	"leat/decompose/pack"
	"leat/engine/token"
	"leat/internal/arch"
)

// Examine reads what [Load] has to know of a model before there is a device, and refuses what can't be run. The tokenizer is
// nil where the file has none, or one that isn't supported, and noTok says so: such a model runs on token ids.
func Examine(m *pack.Model) (h *arch.Hyper, tok *token.Tokenizer, noTok, err error) {
	if h, err = arch.Read(m); err != nil {
		return nil, nil, nil, err
	}
	tok, err = token.New(m.Metadata)
	var unsupported *token.UnsupportedError
	if errors.As(err, &unsupported) || errors.Is(err, token.ErrNone) {
		return h, nil, err, nil
	}
	return h, tok, nil, err
}
