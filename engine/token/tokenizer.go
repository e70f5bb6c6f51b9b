package token

import (
	"fmt"
	"strings"

	"leat/gguf"
)

// Tokenizer is a model's vocabulary, ready to use.
type Tokenizer struct {
	*vocab
	model   model
	text    *trie // tokens that plain text always means: user-defined
	special *trie // those, and the ones that need the caller's leave

	pieces    []byte   // all pieces, one after another
	pieceEnds []uint32 // (V)

	strips strips
}

// model is one kind of vocabulary.
type model interface {
	vocabulary() *vocab
	encoder() encoder
	appendPiece(dst []byte, id ID) []byte
}

// models are the kinds of vocabulary, as tokenizer.ggml.model names them.
var models = []struct {
	name string
	read func(*gguf.Metadata) (model, error)
}{
	{"llama", newSPM},
	{"gpt2", newBPE},
	{"gemma4", newBPE},
	{"whitespace", newBPE},
	{"bert", newWPM},
	{"t5", newUGM},
}

// encoder is a model with the scratch for one text. fresh: nothing, or a special token,
// stands before the text.
type encoder interface {
	encode(dst []ID, text string, fresh bool) []ID
}

// New reads the tokenizer.ggml.* keys. The error is an [*UnsupportedError], wraps [ErrNone],
// or wraps [gguf.ErrFormat] where the keys contradict each other.
func New(md *gguf.Metadata) (*Tokenizer, error) {
	const key = "tokenizer.ggml.model"
	if err := checkTypes(md); err != nil {
		return nil, err
	}
	name, ok := md.String(key)
	if !ok {
		if _, tokens := md.Get("tokenizer.ggml.tokens"); tokens {
			return nil, badKey(key, "none", "the name of a tokenizer")
		}
		name = "none"
	}
	if name == "none" || name == "no_vocab" {
		return nil, fmt.Errorf("read the tokenizer: %w", ErrNone)
	}
	var known []string
	for _, m := range models {
		if m.name == name {
			return newTokenizer(md, m.read)
		}
		known = append(known, m.name)
	}
	return nil, &UnsupportedError{Key: key, Name: name, Known: known}
}

func newTokenizer(md *gguf.Metadata, read func(*gguf.Metadata) (model, error)) (*Tokenizer, error) {
	m, err := read(md)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{vocab: m.vocabulary(), model: m}
	t.strips = readStrips(md, t.vocab)
	t.index()
	return t, nil
}

// index gathers the tokens that are found in a text before all else, and the pieces of all.
func (t *Tokenizer) index() {
	var text, special []ID
	t.pieceEnds = make([]uint32, len(t.texts))
	for id := range ID(len(t.texts)) {
		switch t.kinds[id] {
		case userDefined:
			text, special = append(text, id), append(special, id)
			t.pieces = t.model.appendPiece(t.pieces, id)
		case control, unknown:
			special = append(special, id)
		default:
			t.pieces = t.model.appendPiece(t.pieces, id)
		}
		t.pieceEnds[id] = uint32(len(t.pieces))
	}
	t.text, t.special = newTrie(text, t.Text), newTrie(special, t.Text)
}

// Encode turns text into ids. addSpecial puts BOS before and EOS after, as far as the
// file wants them; nothing else in this program does. parseSpecial lets the spelling of
// a control token become that token: for templates, never for what a user wrote.
func (t *Tokenizer) Encode(text string, addSpecial, parseSpecial bool) []ID {
	ids := make([]ID, 0, len(text)/3+2)
	if addSpecial && t.AddsBOS() {
		ids = append(ids, t.bos)
	}
	find := t.text.find
	if parseSpecial {
		find = t.special.find
	}
	ids = t.split(ids, text, find, func(s string) string { return s })
	if addSpecial && t.AddsEOS() {
		ids = append(ids, t.eos)
	}
	return ids
}

// findFunc is [trie.find] or like it.
type findFunc func(text string) (off, size int, id ID)

// split appends the ids of text, cut at the special tokens that find knows; plain
// prepares the text between them.
func (t *Tokenizer) split(ids []ID, text string, find findFunc, plain func(string) string) []ID {
	e := t.model.encoder()
	for fresh := true; len(text) > 0; {
		off, size, id := find(text)
		before := text[:off]
		if t.strips.before[id] {
			before = strings.TrimRight(before, whiteSpace)
		}
		if before != "" {
			ids = e.encode(ids, plain(before), fresh)
			fresh = false
		}
		text = text[off+size:]
		if id == none {
			continue
		}
		ids = append(ids, id)
		fresh = true
		if t.strips.after[id] {
			text = strings.TrimLeft(text, whiteSpace)
		}
	}
	return ids
}

// Piece is the bytes an id adds to the text, perhaps part of a rune: none for a control
// or unknown token, or an id outside the vocabulary. Read only.
func (t *Tokenizer) Piece(id ID) []byte {
	if !t.has(id) {
		return nil
	}
	start, end := uint32(0), t.pieceEnds[id]
	if id > 0 {
		start = t.pieceEnds[id-1]
	}
	if start == end {
		return nil
	}
	return t.pieces[start:end:end]
}

// Decode joins the pieces, without the space that Encode put before the text. It can
// hold bytes that are not UTF-8, as the text given to Encode can.
func (t *Tokenizer) Decode(ids []ID) string {
	var b strings.Builder
	drop := t.spaceFirst
	for _, id := range ids {
		piece := t.Piece(id)
		if drop && len(piece) > 0 {
			drop = false
			if piece[0] == ' ' && t.kinds[id] != userDefined {
				piece = piece[1:]
			}
		}
		b.Write(piece)
	}
	return b.String()
}

// Text is the vocabulary's own spelling of an id.
func (t *Tokenizer) Text(id ID) string {
	if !t.has(id) {
		return ""
	}
	return t.texts[id]
}

// Find is the id of a token by the vocabulary's own spelling.
func (t *Tokenizer) Find(text string) (ID, bool) {
	for i, s := range t.texts {
		if s == text {
			return ID(i), true
		}
	}
	return none, false
}

// Size is the number of tokens.
func (t *Tokenizer) Size() int { return len(t.texts) }

// BOS is the token that begins a text.
func (t *Tokenizer) BOS() (ID, bool) { return t.bos, t.bos != none }

// EOS is the token that ends a text.
func (t *Tokenizer) EOS() (ID, bool) { return t.eos, t.eos != none }

// AddsBOS reports whether Encode puts BOS before a text when asked for special tokens.
func (t *Tokenizer) AddsBOS() bool { return t.addBOS && t.bos != none }

// AddsEOS reports whether Encode puts EOS after it.
func (t *Tokenizer) AddsEOS() bool { return t.addEOS && t.eos != none }

// IsEOG reports whether an id ends a generation.
func (t *Tokenizer) IsEOG(id ID) bool { return t.eog[id] }

// IsControl reports whether an id steers and is no text.
func (t *Tokenizer) IsControl(id ID) bool { return t.has(id) && t.kinds[id] == control }

// Notes are sentences about what the file doesn't say, or says and isn't done.
func (t *Tokenizer) Notes() []string { return t.notes }

// String names the tokenizer for a log.
func (t *Tokenizer) String() string { return fmt.Sprintf("%T of %d tokens", t.model, len(t.texts)) }
