package jinja

import (
	"fmt"
	"slices"
)

// Template is a compiled template. Several goroutines may render it.
type Template struct{ body []stmt }

// Parse compiles a template.
func Parse(source string) (t *Template, err error) {
	defer guard(&err)
	if len(source) > maxSource {
		return nil, fmt.Errorf("found %d bytes, wanted at most %d", len(source), maxSource)
	}
	p := &parser{toks: lex(source)}
	body := p.statements()
	if p.cur().kind != kEOF {
		p.fail("found an unexpected %v", p.peek(1))
	}
	return &Template{body}, nil
}

type parser struct {
	toks  []tok
	pos   int
	depth int
	loops int // that a break could leave

	blocks []string // their names
}

func (p *parser) cur() tok { return p.toks[p.pos] }

func (p *parser) peek(n int) tok { return p.toks[min(p.pos+n, len(p.toks)-1)] }

func (p *parser) next() tok {
	t := p.cur()
	if t.kind != kEOF {
		p.pos++
	}
	return t
}

func (p *parser) fail(format string, args ...any) { failAt(p.cur().line, format, args...) }

func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail("%w: it is nested too deeply", ErrLimit)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) isOp(ops ...string) bool {
	return p.cur().kind == kOp && slices.Contains(ops, p.cur().text)
}

func (p *parser) takeOp(op string) bool {
	ok := p.isOp(op)
	if ok {
		p.pos++
	}
	return ok
}

func (p *parser) expectOp(op string) {
	if !p.takeOp(op) {
		p.fail("found an unexpected %v, wanted %q", p.cur(), op)
	}
}

func (p *parser) isName(n string) bool { return p.cur().kind == kName && p.cur().text == n }

func (p *parser) takeName(n string) bool {
	ok := p.isName(n)
	if ok {
		p.pos++
	}
	return ok
}

func (p *parser) expectName() string {
	if p.cur().kind != kName {
		p.fail("found an unexpected %v, wanted a name", p.cur())
	}
	return p.next().text
}

func (p *parser) endTag(k kind) {
	if p.cur().kind != k {
		p.fail("found an unexpected %v, wanted %v", p.cur(), tok{kind: k})
	}
	p.pos++
}

// statements runs up to the end, or to a block tag with one of these names, of which it
// leaves the name as what comes next.
func (p *parser) statements(until ...string) []stmt {
	p.enter()
	defer p.leave()
	var body []stmt
	for {
		switch t := p.cur(); t.kind {
		case kData:
			body = append(body, &text{p.next().text})
		case kVarBegin:
			p.pos++
			body = append(body, &output{t.line, p.tuple(false)})
			p.endTag(kVarEnd)
		case kBlockBegin:
			if n := p.peek(1); n.kind == kName && slices.Contains(until, n.text) {
				p.pos++
				return body
			}
			if len(until) == 0 && p.depth == 1 && p.peek(1).kind != kName {
				p.pos++
				p.fail("found an unexpected %v, wanted a statement", p.cur())
			}
			p.pos++
			if s := p.statement(); s != nil {
				body = append(body, s)
			}
		default:
			if len(until) > 0 {
				p.fail("found the end of the template, wanted %q", until[len(until)-1])
			}
			return body
		}
	}
}

// body takes the statements of a block and its end tag.
func (p *parser) body(end string) []stmt {
	p.endTag(kBlockEnd)
	b := p.statements(end)
	p.next()
	p.endTag(kBlockEnd)
	return b
}

func (p *parser) statement() stmt {
	line := p.cur().line
	switch n := p.expectName(); n {
	case "if":
		return p.ifStmt(line)
	case "for":
		return p.forStmt(line)
	case "set":
		return p.setStmt(line)
	case "macro":
		return &macroStmt{line, p.macro(p.expectName(), "endmacro")}
	case "call":
		return p.callStmt(line)
	case "filter":
		f := p.filter(nil)
		for p.takeOp("|") {
			f = p.filter(f)
		}
		return &filterStmt{line, f, p.outsideLoops("endfilter")}
	case "with":
		return p.withStmt(line)
	case "generation": // Hugging Face's mark around what the assistant said
		return &block{p.body("endgeneration")}
	case "block":
		name := p.expectName()
		if slices.Contains(p.blocks, name) {
			p.fail("block %q is defined twice", name)
		}
		p.blocks = append(p.blocks, name)
		for p.takeName("scoped") || p.takeName("required") {
		}
		p.endTag(kBlockEnd)
		b := p.statements("endblock")
		p.next()
		if p.cur().kind == kName {
			p.pos++
		}
		p.endTag(kBlockEnd)
		return &block{b}
	case "do":
		x := p.tuple(false)
		p.endTag(kBlockEnd)
		return &setStmt{line: line, x: x}
	case "break", "continue":
		if p.loops == 0 {
			p.fail("%s is outside of a loop", n)
		}
		p.endTag(kBlockEnd)
		return &jump{map[string]signal{"break": broke, "continue": continued}[n]}
	case "include", "import", "from", "extends":
		p.fail("%q is not supported: a chat template stands alone", n)
	default:
		p.fail("no statement %q can stand here", n)
	}
	return nil
}

// outsideLoops takes a body that no break may leave.
func (p *parser) outsideLoops(end string) []stmt {
	loops := p.loops
	p.loops = 0
	b := p.body(end)
	p.loops = loops
	return b
}

func (p *parser) ifStmt(line int) stmt {
	s := &ifStmt{line: line}
	b := branch{test: p.tuple(false)}
	for {
		p.endTag(kBlockEnd)
		if b.test == nil {
			b.body = p.statements("endif")
		} else {
			b.body = p.statements("elif", "else", "endif")
		}
		s.branches = append(s.branches, b)
		b = branch{}
		switch p.next().text {
		case "elif":
			b.test = p.tuple(false)
		case "endif":
			p.endTag(kBlockEnd)
			return s
		}
	}
}

func (p *parser) forStmt(line int) stmt {
	s := &forStmt{line: line}
	s.target = p.targets(false)
	if !p.takeName("in") {
		p.fail(`found an unexpected %v, wanted "in"`, p.cur())
	}
	if s.in = p.or(); p.isOp(",") {
		l := &list{items: []expr{s.in}, tuple: true}
		for p.takeOp(",") {
			l.items = append(l.items, p.or())
		}
		s.in = l
	}
	if p.takeName("if") {
		s.filter = p.expression()
	}
	s.recursive = p.takeName("recursive")
	p.endTag(kBlockEnd)
	p.loops++
	s.body = p.statements("else", "endfor")
	p.loops--
	if p.next().text == "else" {
		p.endTag(kBlockEnd)
		s.none = p.statements("endfor")
		p.next()
	}
	p.endTag(kBlockEnd)
	return s
}

func (p *parser) setStmt(line int) stmt {
	s := &setStmt{line: line}
	t := p.targets(true)
	s.target = &t
	if p.takeOp("=") {
		s.x = p.tuple(false)
		p.endTag(kBlockEnd)
		return s
	}
	for p.takeOp("|") {
		s.filter = p.filter(s.filter)
	}
	s.body = p.outsideLoops("endset")
	if s.body == nil {
		s.body = []stmt{}
	}
	return s
}

// targets takes what a value is bound to: one target, or several with commas. attributes: those of namespaces may stand there.
func (p *parser) targets(attributes bool) target {
	p.enter()
	defer p.leave()
	one := func() (t target) {
		if p.takeOp("(") {
			t = p.targets(attributes)
			p.expectOp(")")
			return t
		}
		t.name = p.expectName()
		if attributes && p.takeOp(".") {
			t.attr = p.expectName()
		}
		return t
	}
	t := one()
	if !p.isOp(",") {
		return t
	}
	items := []target{t}
	for p.takeOp(",") {
		items = append(items, one())
	}
	return target{items: items}
}

func (p *parser) macro(name, end string) *macroDef {
	f := &macroDef{name: name}
	if end == "endmacro" || p.isOp("(") {
		p.expectOp("(")
		for first := true; !p.takeOp(")"); first = false {
			if !first {
				p.expectOp(",")
				if p.takeOp(")") {
					break
				}
			}
			f.params = append(f.params, p.expectName())
			if p.takeOp("=") {
				f.defaults = append(f.defaults, p.expression())
			} else if f.defaults != nil {
				p.fail("a parameter without a default follows one with")
			}
		}
	}
	if end == "endmacro" {
		f.body = p.outsideLoops(end)
	}
	return f
}

func (p *parser) callStmt(line int) stmt {
	s := &callStmt{line: line, f: p.macro("caller", "")}
	c, ok := p.expression().(*call)
	if !ok {
		p.fail("wanted a call in a call block")
	}
	s.call = c
	s.f.body = p.outsideLoops("endcall")
	return s
}

func (p *parser) withStmt(line int) stmt {
	s := &withStmt{line: line}
	for p.cur().kind != kBlockEnd {
		if len(s.names) > 0 {
			p.expectOp(",")
		}
		s.names = append(s.names, p.expectName())
		p.expectOp("=")
		s.xs = append(s.xs, p.expression())
	}
	s.body = p.body("endwith")
	return s
}
