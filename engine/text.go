package engine

import (
	"bytes"
	"fmt"
	"sync"

	"leat/decompose/pack"
	"leat/engine/chat"
	"leat/engine/token"
	"leat/gguf"
)

const chatTemplateKey = "tokenizer.chat_template"

// text is what a model's file says of text: its tokenizer, and its chat template, which is compiled when it is first asked for.
type text struct {
	metadata *gguf.Metadata
	tok      *token.Tokenizer
	noTok    error // why there is no tokenizer

	once     sync.Once
	template *chat.Template
	err      error
}

// read takes the tokenizer from a model's file. A file that has none, or one that isn't supported, runs on token ids.
func (t *text) read(m *pack.Model) (err error) {
	t.metadata = m.Metadata
	t.tok, err = token.New(m.Metadata)
	if token.Missing(err) {
		t.tok, t.noTok, err = nil, &noTokenizer{err}, nil
	}
	return err
}

// notes are the tokenizer's, for whoever loads the model.
func (t *text) notes() []string {
	if t.tok == nil {
		return nil
	}
	return t.tok.Notes()
}

func (t *text) hasTemplate() bool {
	v, ok := t.metadata.Get(chatTemplateKey)
	return ok && v != "" && t.tok != nil
}

func (t *text) compile() (*chat.Template, error) {
	if t.tok == nil {
		return nil, fmt.Errorf("encode a conversation: %w", t.noTok)
	}
	if !t.hasTemplate() {
		return nil, fmt.Errorf("encode a conversation: %w", ErrNoChatTemplate)
	}
	source, ok := t.metadata.String(chatTemplateKey)
	if !ok {
		v, _ := t.metadata.Get(chatTemplateKey)
		return nil, fmt.Errorf("read %s: found a value of Go's type %T, wanted a string", chatTemplateKey, v)
	}
	spelled := func(id token.ID, ok bool) string {
		if !ok {
			return ""
		}
		return t.tok.Text(id)
	}
	template, err := chat.New(source, chat.Vocabulary{BOS: spelled(t.tok.BOS()), EOS: spelled(t.tok.EOS()), IsControl: func(spelling string) bool {
		id, ok := t.tok.Find(spelling)
		return ok && t.tok.IsControl(id)
	}})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", chatTemplateKey, err)
	}
	return template, nil
}

// Tokenizer turns text into ids; nil when the file's tokenizer is not supported.
func (m *Model) Tokenizer() *token.Tokenizer { return m.text.tok }

// TokenizerError says why Tokenizer is nil; it is nil where there is one, and wraps [ErrNoTokenizer] where there is none.
func (m *Model) TokenizerError() error { return m.text.noTok }

// Encode turns text into ids, shape (T); text never makes a control token. With
// addSpecial the file's BOS/EOS rules apply. It is nil where [Model.Tokenizer] is.
func (m *Model) Encode(text string, addSpecial bool) []token.ID {
	if m.text.tok == nil {
		return nil
	}
	return m.text.tok.Encode(text, addSpecial, false)
}

// Breakers lists every token whose text contains one of texts, and all control tokens, for
// sample.Params.DRYBreakers: that a line ends or a turn begins as one did before is no
// repetition. Never nil; empty for a model whose tokenizer we don't have.
func (m *Model) Breakers(texts ...string) []token.ID {
	ids, tok := []token.ID{}, m.text.tok
	if tok == nil {
		return ids
	}
	for i := range tok.Size() {
		id := token.ID(i)
		breaks := tok.IsControl(id)
		for _, text := range texts {
			breaks = breaks || text != "" && bytes.Contains(tok.Piece(id), []byte(text))
		}
		if breaks {
			ids = append(ids, id)
		}
	}
	return ids
}
