package token

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"leat/gguf"
)

// ID is a token's number: its place in the vocabulary.
type ID = int32

// none stands where a vocabulary has no such token.
const none ID = -1

// kind is a token's type, by tokenizer.ggml.token_type's number.
type kind uint8

const (
	undefined   kind = iota // seen in old files: taken as normal
	normal                  // made by merging
	unknown                 // stands for text that no other token can
	control                 // BOS, EOS, <|im_start|> …: steers, is no text
	userDefined             // text that is always one token, before any merging
	unused                  // a filler; may help merging along, is not an answer
	byteToken               // <0xNN>
)

// vocab is what the tokenizer.ggml.* keys say, checked.
type vocab struct {
	texts []string // (V) the file's own spelling
	kinds []kind   // (V)

	bos, eos, unk  ID // none if absent
	addBOS, addEOS bool
	eog            map[ID]bool

	spaceFirst bool // Encode may put a space before a text, which Decode takes back
	notes      []string
}

// vocabulary gives it out of the model that embeds it.
func (v *vocab) vocabulary() *vocab { return v }

// eogTexts are spellings that end a reply in one model family or another; converters
// leave some of them out of the *_token_id keys.
var eogTexts = map[string]bool{
	"<|eot_id|>": true, "<|eom_id|>": true, "<|end_of_text|>": true, // Llama 3
	"<|im_end|>": true, "<|endoftext|>": true, // ChatML: Qwen and many more
	"<|end|>": true, "<|return|>": true, "<|call|>": true, // Phi 3, gpt-oss
	"<|calls|>": true, "<|flush|>": true, "[e~[": true, // Solar Open, MiniMax
	"<end_of_turn>": true, "<turn|>": true, "<eos>": true, "<|tool_response>": true, // Gemma
	"</s>": true, "<|eot|>": true,
	"<EOT>": true, "_<EOT>": true, "[EOT]": true, "[EOS]": true,
	"<｜end▁of▁sentence｜>": true, "<end_of_utterance>": true, "<|END_OF_TURN_TOKEN|>": true,
}

// rules are what the field assumes of one kind of vocabulary.
type rules struct {
	bos, eos, unk        ID       // where the file names none
	bosKeys, eosKeys     []string // what names them, the first that is present; nil: the usual key
	addBOS, addEOS       bool     // where the file is silent
	alwaysBOS, alwaysEOS bool     // added whatever the file says
}

func readVocab(md *gguf.Metadata, r rules) (*vocab, error) {
	const key = "tokenizer.ggml.tokens"
	texts, ok := md.Strings(key)
	if !ok || len(texts) == 0 {
		return nil, badKey(key, "no tokens", "an array of strings")
	}
	if len(texts) > math.MaxInt32 {
		return nil, badKey(key, fmt.Sprintf("%d tokens", len(texts)), "fewer than 2^31")
	}
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	if total > math.MaxInt32 {
		return nil, badKey(key, fmt.Sprintf("%d bytes of text", total), "less than 2 GiB")
	}
	v := &vocab{texts: texts}
	if err := v.readIDs(md, r); err != nil {
		return nil, err
	}
	if err := v.readKinds(md); err != nil {
		return nil, err
	}
	if _, present := md.Get("tokenizer.ggml.suppress_tokens"); present {
		v.notes = append(v.notes, `key "tokenizer.ggml.suppress_tokens" is not used: its tokens can be sampled`)
	}
	return v, v.readEOG(md)
}

func (v *vocab) readIDs(md *gguf.Metadata, r rules) (err error) {
	for _, f := range []struct {
		keys     []string
		usual    string
		id       *ID
		fallback ID
	}{
		{r.bosKeys, "tokenizer.ggml.bos_token_id", &v.bos, r.bos},
		{r.eosKeys, "tokenizer.ggml.eos_token_id", &v.eos, r.eos},
		{nil, "tokenizer.ggml.unknown_token_id", &v.unk, r.unk},
	} {
		if f.keys == nil {
			f.keys = []string{f.usual}
		}
		i := slices.IndexFunc(f.keys, func(key string) bool { _, present := md.Get(key); return present })
		if *f.id, err = v.readID(md, f.keys[max(0, i)], f.fallback); err != nil {
			return err
		}
	}
	if v.addBOS, err = v.readAdd(md, "tokenizer.ggml.add_bos_token", v.bos, r.addBOS, r.alwaysBOS); err != nil {
		return err
	}
	v.addEOS, err = v.readAdd(md, "tokenizer.ggml.add_eos_token", v.eos, r.addEOS, r.alwaysEOS)
	return err
}

// readAdd reads whether a token is added to each text.
func (v *vocab) readAdd(md *gguf.Metadata, key string, id ID, fallback, always bool) (bool, error) {
	says, present := md.Bool(key)
	switch {
	case always && present && !says:
		v.notes = append(v.notes, fmt.Sprintf("key %q says false, but models of this kind need the token: it is added", key))
	case always:
	case !present:
		return fallback, nil
	case says && id == none:
		return false, badKey(key, "true", "false, because no key names the token")
	}
	return always || says, nil
}

// readID reads a special token's id. All ones, or -1, is how some converters say "none".
func (v *vocab) readID(md *gguf.Metadata, key string, fallback ID) (ID, error) {
	value, present := md.Get(key)
	if !present {
		if int(fallback) >= len(v.texts) {
			return none, nil
		}
		return fallback, nil
	}
	id, ok := md.Int(key)
	switch {
	case ok && (id == -1 || id == math.MaxUint32):
		return none, nil
	case !ok || id < 0 || id >= int64(len(v.texts)):
		return none, badKey(key, fmt.Sprintf("%v", value), "an id below %d", len(v.texts))
	}
	return ID(id), nil
}

// readBool is of a key that checkTypes has seen.
func readBool(md *gguf.Metadata, key string, fallback bool) bool {
	if b, present := md.Bool(key); present {
		return b
	}
	return fallback
}

func (v *vocab) readKinds(md *gguf.Metadata) error {
	const key = "tokenizer.ggml.token_type"
	v.kinds = make([]kind, len(v.texts))
	if _, present := md.Get(key); !present {
		v.guessKinds()
		return nil
	}
	types, ok := md.Ints(key)
	if !ok || len(types) != len(v.texts) {
		return badKey(key, fmt.Sprintf("%d integers", len(types)), "%d, one per token", len(v.texts))
	}
	for i, t := range types {
		if t < 0 || t > int64(byteToken) {
			return badKey(key, fmt.Sprintf("type %d at token %d", t, i), "0 to %d", byteToken)
		}
		if v.kinds[i] = kind(t); v.kinds[i] == undefined {
			v.kinds[i] = normal
		}
	}
	return nil
}

// guessKinds is for a file without types: at least the tokens named by id steer.
func (v *vocab) guessKinds() {
	for i, text := range v.texts {
		v.kinds[i] = normal
		if _, ok := byteText(text); ok {
			v.kinds[i] = byteToken
		}
	}
	for _, id := range []ID{v.bos, v.eos} {
		if id != none {
			v.kinds[id] = control
		}
	}
	if v.unk != none && v.kinds[v.unk] == normal {
		v.kinds[v.unk] = unknown
	}
}

// readEOG gathers every id that ends a reply. A well-known spelling that a converter wrote
// as user-defined becomes a control token, as in the field: it steers, text may not.
func (v *vocab) readEOG(md *gguf.Metadata) error {
	v.eog = map[ID]bool{}
	for _, key := range []string{"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
		"tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id", "tokenizer.ggml.fim_sep_token_id"} {
		id, err := v.readID(md, key, none)
		if err != nil {
			return err
		}
		if id != none {
			v.eog[id] = true
		}
	}
	if v.eos != none {
		v.eog[v.eos] = true
	}
	for i, text := range v.texts {
		if k := v.kinds[i]; (k == control || k == userDefined) && eogTexts[text] {
			v.kinds[i] = control
			v.eog[ID(i)] = true
		}
	}
	v.keepParts()
	return nil
}

// keepParts takes tokens off the list where others end a reply: in gpt-oss and Solar Open
// <|end|> ends one part of it, and the answer comes after the thinking's; in Gemma 4 </s> is HTML.
func (v *vocab) keepParts() {
	ends := map[string]ID{}
	for id := range v.eog {
		ends[v.texts[id]] = id
	}
	has := func(text string) bool { _, ok := ends[text]; return ok }
	end, ok := ends["<|end|>"]
	if ok && end != v.eos && (has("<|return|>") && has("<|call|>") || has("<|calls|>") && has("<|flush|>")) {
		delete(v.eog, end)
	}
	if s, ok := ends["</s>"]; ok && s != v.eos && has("<|tool_response>") {
		delete(v.eog, s)
	}
}

// byteTokens are the tokens <0xNN>; none where the vocabulary lacks one.
func (v *vocab) byteTokens() (bytes [256]ID) {
	for i := range bytes {
		bytes[i] = none
	}
	for i, text := range v.texts {
		if b, ok := byteText(text); ok && v.kinds[i] == byteToken && bytes[b] == none {
			bytes[b] = ID(i)
		}
	}
	return bytes
}

// appendPiece appends the text of a token whose spelling is SentencePiece's.
func (v *vocab) appendPiece(dst []byte, id ID) []byte {
	text := v.texts[id]
	switch v.kinds[id] {
	case byteToken:
		if b, ok := byteText(text); ok {
			return append(dst, b)
		}
		return append(dst, text...)
	case userDefined:
		return append(dst, text...)
	}
	return append(dst, strings.ReplaceAll(text, space, " ")...)
}

func (v *vocab) has(id ID) bool { return id >= 0 && int(id) < len(v.texts) }

// byteText is the byte that a spelling like <0x0A> stands for.
func byteText(text string) (byte, bool) {
	if len(text) != 6 || !strings.HasPrefix(text, "<0x") || text[5] != '>' {
		return 0, false
	}
	hi, ok1 := hexDigit(text[3])
	lo, ok2 := hexDigit(text[4])
	return hi<<4 | lo, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
