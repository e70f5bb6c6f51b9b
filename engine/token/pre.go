package token

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"leat/gguf"
)

// preSpec is a pre-tokenizer as tokenizer.ggml.pre names it. Each pattern cuts the words
// that the one before it left; what a pattern doesn't match is a word too.
type preSpec struct {
	names        []string
	numbers      runeCut // comes before the patterns
	patterns     []string
	ignoreMerges bool // a word that is a token is taken whole
	addBOS       bool // where the file is silent
	alwaysBOS    bool // whatever the file says
	chars        bool // merges join characters, not bytes
	dropSpace    bool // white space is no word
}

type preTokenizer struct {
	preSpec
	regexps []*regexp2.Regexp
}

// findPre makes the pre-tokenizer of [specOf].
func findPre(md *gguf.Metadata, implied string) (*preTokenizer, error) {
	spec, err := specOf(md, implied)
	if err != nil {
		return nil, err
	}
	return spec.compile()
}

// specOf reads which pre-tokenizer the file wants, if the model doesn't imply one; without the key, as the field does,
// the default one.
func specOf(md *gguf.Metadata, implied string) (*preSpec, error) {
	const key = "tokenizer.ggml.pre"
	name, ok := md.String(key)
	switch {
	case implied != "":
		name = implied
	case !ok:
		name = "default"
	}
	var known []string
	for i := range preSpecs {
		spec := &preSpecs[i]
		if slices.Contains(spec.names, name) {
			return spec, nil
		}
		known = append(known, spec.names...)
	}
	return nil, &UnsupportedError{Key: key, Name: name, Known: known}
}

func (s preSpec) compile() (*preTokenizer, error) {
	p := &preTokenizer{preSpec: s}
	for _, pattern := range s.patterns {
		re, err := regexp2.Compile(pattern, regexp2.OptionMaxBacktrackingStackSize(-1))
		if err != nil {
			return nil, fmt.Errorf("compile pre-tokenizer %s: %w", strings.Join(s.names, ", "), err)
		}
		p.regexps = append(p.regexps, re)
	}
	return p, nil
}

// split yields the words of the text, which joined are the text again, byte for byte.
// To the patterns a byte that is not UTF-8 is a symbol, as U+FFFD is.
func (p *preTokenizer) split(text string, yield func(word string)) {
	s := splitter{text: text, yield: yield}
	if p.numbers != nil {
		p.numbers([]rune(text), func(word []rune) { s.cut(p.regexps, word) })
		return
	}
	s.cut(p.regexps, []rune(text))
}

type splitter struct {
	text  string // not yet yielded
	yield func(string)
}

// cut yields the runes, which are the next ones of the text, cut by all the regexps.
func (s *splitter) cut(regexps []*regexp2.Regexp, runes []rune) {
	if len(runes) == 0 {
		return
	}
	if len(regexps) == 0 {
		s.emit(len(runes))
		return
	}
	done := 0
	// The error can only be a limit, and none is set; what it left is cut below.
	_ = regexps[0].FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
		i, n, _ := m.GroupRange(0)
		s.cut(regexps[1:], runes[done:i])
		s.cut(regexps[1:], runes[i:i+n])
		done = i + n
		return true
	})
	s.cut(regexps[1:], runes[done:])
}

func (s *splitter) emit(runes int) {
	off := 0
	for range runes {
		_, size := utf8.DecodeRuneInString(s.text[off:])
		off += size
	}
	s.yield(s.text[:off])
	s.text = s.text[off:]
}
