package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	kEOF kind = iota
	kData
	kVarBegin
	kVarEnd
	kBlockBegin
	kBlockEnd
	kName
	kString
	kInt
	kFloat
	kOp // text holds the operator
)

type tok struct {
	kind kind
	text string
	line int
}

func (t tok) String() string {
	switch t.kind {
	case kEOF:
		return "end of template"
	case kData:
		return "text"
	case kVarEnd:
		return `"}}"`
	case kBlockEnd:
		return `"%}"`
	case kVarBegin:
		return `"{{"`
	case kBlockBegin:
		return `"{%"`
	}
	return strconv.Quote(t.text)
}

// lexer cuts a template as Jinja's own does with trim_blocks and lstrip_blocks on.
type lexer struct {
	src       string
	pos, line int
	atStart   bool // of a line, as far as what was consumed last can tell
	out       []tok
}

func lex(src string) []tok {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, atStart: true}
	for l.pos < len(l.src) {
		l.root()
	}
	l.emit(kEOF, "")
	return l.out
}

func (l *lexer) fail(format string, args ...any) { failAt(l.line, format, args...) }

func (l *lexer) emit(k kind, text string) { l.out = append(l.out, tok{k, text, l.line}) }

func (l *lexer) rest() string { return l.src[l.pos:] }

// skip consumes n bytes and keeps count of the lines.
func (l *lexer) skip(n int) string {
	s := l.src[l.pos : l.pos+n]
	l.line += strings.Count(s, "\n")
	l.pos += n
	if s != "" {
		l.atStart = s[len(s)-1] == '\n'
	}
	return s
}

// root takes text up to the next tag and then the tag.
func (l *lexer) root() {
	rest := l.rest()
	open := len(rest)
	for i := 0; i+1 < len(rest); i++ {
		if rest[i] == '{' && (rest[i+1] == '{' || rest[i+1] == '%' || rest[i+1] == '#') {
			open = i
			break
		}
	}
	if open == len(rest) {
		l.emit(kData, l.skip(open))
		return
	}
	what, sign := rest[open+1], byte(0)
	if open+2 < len(rest) && (rest[open+2] == '-' || rest[open+2] == '+') {
		sign = rest[open+2]
	}
	l.data(open, sign, what != '{')
	l.skip(2)
	if sign != 0 {
		l.skip(1)
	}
	switch what {
	case '#':
		l.comment()
	case '%':
		if !l.raw() {
			l.emit(kBlockBegin, "")
			l.expression(kBlockEnd)
		}
	default:
		l.emit(kVarBegin, "")
		l.expression(kVarEnd)
	}
}

// data emits the n bytes before a tag, trimmed as the tag's sign asks.
func (l *lexer) data(n int, sign byte, lstrip bool) {
	line, atStart := l.line, l.atStart
	text := l.skip(n)
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	case sign != '+' && lstrip:
		if i := strings.LastIndexByte(text, '\n') + 1; (i > 0 || atStart) && strings.TrimFunc(text[i:], isSpace) == "" {
			text = text[:i]
		}
	}
	if text != "" {
		l.out = append(l.out, tok{kData, text, line})
	}
}

// closes tells whether a tag ends here, and consumes its end: "-" takes all white space
// after it with it, and one newline goes after any block unless "+" keeps it.
func (l *lexer) closes(end string, newline bool) bool {
	rest := l.rest()
	sign := byte(0)
	if rest != "" && (rest[0] == '-' || rest[0] == '+' && newline) {
		sign, rest = rest[0], rest[1:]
	}
	if !strings.HasPrefix(rest, end) {
		return false
	}
	rest = rest[len(end):]
	switch {
	case sign == '-':
		rest = strings.TrimLeftFunc(rest, isSpace)
	case sign == 0 && newline:
		rest = strings.TrimPrefix(rest, "\n")
	}
	l.skip(len(l.rest()) - len(rest))
	return true
}

func (l *lexer) comment() {
	i := strings.Index(l.rest(), "#}")
	if i < 0 {
		l.fail("a comment has no end")
	}
	if i > 0 && strings.IndexByte("-+", l.rest()[i-1]) >= 0 {
		i--
	}
	l.skip(i)
	l.closes("#}", true)
}

// raw takes a raw block, of which the opening "{%" is consumed already.
func (l *lexer) raw() bool {
	after, ok := rawTag(l.rest(), "raw")
	if !ok {
		return false
	}
	l.skip(len(l.rest()) - len(after))
	if !l.closes("%}", false) {
		l.fail("raw takes no arguments")
	}
	for i := 0; ; {
		n := strings.Index(l.rest()[i:], "{%")
		if n < 0 {
			l.fail("raw has no endraw")
		}
		i += n
		rest, sign := l.rest()[i+2:], byte(0)
		if rest != "" && (rest[0] == '-' || rest[0] == '+') {
			sign, rest = rest[0], rest[1:]
		}
		after, ok := rawTag(rest, "endraw")
		if !ok {
			i += 2
			continue
		}
		l.data(i, sign, true)
		l.skip(len(l.rest()) - len(after))
		if !l.closes("%}", true) {
			l.fail("endraw takes no arguments")
		}
		return true
	}
}

func rawTag(s, name string) (after string, ok bool) {
	s, ok = strings.CutPrefix(strings.TrimLeftFunc(s, isSpace), name)
	s = strings.TrimLeftFunc(s, isSpace)
	return s, ok && (strings.HasPrefix(s, "%}") || strings.HasPrefix(s, "-%}") || strings.HasPrefix(s, "+%}"))
}

var operators = []string{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ".", ",", ":", "|", ";"}

// expression takes tokens until the tag's end, which inside brackets is none.
func (l *lexer) expression(end kind) {
	text := map[kind]string{kVarEnd: "}}", kBlockEnd: "%}"}[end]
	var open []byte
	for {
		l.skip(len(l.rest()) - len(strings.TrimLeftFunc(l.rest(), isSpace)))
		if len(open) == 0 {
			line := l.line
			if l.closes(text, end == kBlockEnd) {
				l.out = append(l.out, tok{end, "", line})
				return
			}
		}
		rest := l.rest()
		r, _ := utf8.DecodeRuneInString(rest)
		switch {
		case rest == "":
			l.fail("a tag has no end: wanted %q", text)
		case r == '"' || r == '\'':
			l.str(byte(r))
		case '0' <= r && r <= '9':
			l.number()
		case r == '_' || unicode.IsLetter(r):
			n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(rest)
			}
			l.emit(kName, rest[:n])
			l.skip(n)
		default:
			open = l.operator(open)
		}
	}
}

func (l *lexer) operator(open []byte) []byte {
	for _, op := range operators {
		if !strings.HasPrefix(l.rest(), op) {
			continue
		}
		switch op {
		case "(", "[", "{":
			open = append(open, map[string]byte{"(": ')', "[": ']', "{": '}'}[op])
		case ")", "]", "}":
			if len(open) == 0 || open[len(open)-1] != op[0] {
				l.fail("found an unexpected %q", op)
			}
			open = open[:len(open)-1]
		}
		l.emit(kOp, op)
		l.skip(len(op))
		return open
	}
	r, _ := utf8.DecodeRuneInString(l.rest())
	l.fail("found an unexpected %q", r)
	return nil
}

func (l *lexer) number() {
	rest := l.rest()
	n, k := 0, kInt
	digits := func(set string) {
		for n < len(rest) && (strings.IndexByte(set, rest[n]) >= 0 || rest[n] == '_') {
			n++
		}
	}
	const decimal = "0123456789"
	if len(rest) > 1 && rest[0] == '0' && strings.IndexByte("xXoObB", rest[1]) >= 0 {
		n = 2
		digits("0123456789abcdefABCDEF")
	} else {
		digits(decimal)
		if n+1 < len(rest) && rest[n] == '.' && strings.IndexByte(decimal, rest[n+1]) >= 0 && !l.afterDot() {
			k = kFloat
			n++
			digits(decimal)
		}
		if m := n; m < len(rest) && (rest[m] == 'e' || rest[m] == 'E') && !l.afterDot() {
			m++
			if m < len(rest) && (rest[m] == '+' || rest[m] == '-') {
				m++
			}
			if m < len(rest) && strings.IndexByte(decimal, rest[m]) >= 0 {
				k, n = kFloat, m
				digits(decimal)
			}
		}
	}
	l.emit(k, strings.ReplaceAll(rest[:n], "_", ""))
	l.skip(n)
}

func (l *lexer) afterDot() bool { return l.pos > 0 && l.src[l.pos-1] == '.' }

func (l *lexer) str(quote byte) {
	rest := l.rest()
	for n := 1; n < len(rest); n++ {
		switch rest[n] {
		case '\\':
			n++
		case quote:
			text, err := unescape(rest[1:n])
			if err != nil {
				l.fail("string %.40q: %v", rest[:n+1], err)
			}
			l.emit(kString, text)
			l.skip(n + 1)
			return
		}
	}
	l.fail("a string has no end")
}

// unescape reads Python's escapes; what is none stays as it is.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		c := s[i+1]
		s = s[i+2:]
		size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		simple := strings.IndexByte("\\'\"abfnrtv", c)
		switch {
		case c == '\n':
		case simple >= 0:
			b.WriteByte("\\'\"\a\b\f\n\r\t\v"[simple])
		case size > 0:
			if len(s) < size {
				return "", strconv.ErrSyntax
			}
			v, err := strconv.ParseUint(s[:size], 16, 32)
			if err != nil {
				return "", err
			}
			b.WriteRune(rune(v))
			s = s[size:]
		case '0' <= c && c <= '7':
			v := int(c - '0')
			for n := 0; n < 2 && s != "" && '0' <= s[0] && s[0] <= '7'; n++ {
				v, s = v*8+int(s[0]-'0'), s[1:]
			}
			b.WriteRune(rune(v))
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// isSpace is Python's \s.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
