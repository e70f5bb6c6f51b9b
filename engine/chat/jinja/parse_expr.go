package jinja

import (
	"math"
	"slices"
	"strconv"
)

// The grammar of expressions, loosest first.

func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	x := p.or()
	for p.takeName("if") {
		c := &cond{then: x, test: p.or()}
		if p.takeName("else") {
			c.other = p.expression()
		}
		x = c
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for p.takeName("or") {
		x = &logic{true, x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.takeName("and") {
		x = &logic{false, x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.takeName("not") {
		p.enter()
		defer p.leave()
		return &not{p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	x := p.binary(0)
	var c *compare
	for {
		op := ""
		switch {
		case p.isOp("==", "!=", "<", "<=", ">", ">="):
			op = p.next().text
		case p.takeName("in"):
			op = "in"
		case p.isName("not") && p.peek(1).kind == kName && p.peek(1).text == "in":
			p.next()
			p.next()
			op = "not in"
		default:
			if c != nil {
				return c
			}
			return x
		}
		if c == nil {
			c = &compare{l: x}
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, p.binary(0))
	}
}

// levels of the operators that only join two values.
var levels = [][]string{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

func (p *parser) binary(level int) expr {
	if level == len(levels) {
		return p.unary(true)
	}
	x := p.binary(level + 1)
	for p.isOp(levels[level]...) {
		op := p.next().text
		x = &binary{op, x, p.binary(level + 1)}
	}
	return x
}

func (p *parser) unary(filters bool) expr {
	p.enter()
	defer p.leave()
	var x expr
	switch {
	case p.takeOp("-"):
		x = &sign{p.unary(false), true}
	case p.takeOp("+"):
		x = &sign{p.unary(false), false}
	default:
		x = p.primary()
	}
	x = p.postfix(x)
	for filters {
		switch {
		case p.takeOp("|"):
			x = p.filter(x)
		case p.takeName("is"):
			x = p.test(x)
		case p.isOp("("):
			x = &call{x, p.arguments()}
		default:
			return x
		}
	}
	return x
}

func (p *parser) primary() expr {
	t := p.next()
	switch {
	case t.kind == kName:
		switch t.text {
		case "true", "True", "false", "False":
			return &literal{t.text[0]|0x20 == 't'}
		case "none", "None":
			return &literal{nil}
		}
		return &name{t.text}
	case t.kind == kString:
		s := t.text
		for p.cur().kind == kString {
			s += p.next().text
		}
		return &literal{s}
	case t.kind == kInt:
		text := t.text
		for len(text) > 1 && text[0] == '0' && '0' <= text[1] && text[1] <= '9' {
			text = text[1:] // not octal
		}
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			p.fail("number %.40q: %v", t.text, err)
		}
		return &literal{n}
	case t.kind == kFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil && !math.IsInf(f, 0) {
			p.fail("number %.40q: %v", t.text, err)
		}
		return &literal{f}
	case t.kind == kOp && t.text == "(":
		x := p.tuple(true, ")")
		p.expectOp(")")
		return x
	case t.kind == kOp && t.text == "[":
		return &list{items: p.items("]")}
	case t.kind == kOp && t.text == "{":
		return p.dict()
	}
	p.fail("found an unexpected %v, wanted an expression", t)
	return nil
}

// items takes expressions with commas up to the closing bracket.
func (p *parser) items(end string) []expr {
	var xs []expr
	for !p.takeOp(end) {
		if len(xs) > 0 {
			p.expectOp(",")
			if p.takeOp(end) {
				break
			}
		}
		xs = append(xs, p.expression())
	}
	return xs
}

func (p *parser) dict() expr {
	d := &dict{}
	for !p.takeOp("}") {
		if len(d.keys) > 0 {
			p.expectOp(",")
			if p.takeOp("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression())
		p.expectOp(":")
		d.values = append(d.values, p.expression())
	}
	return d
}

// tuple takes one expression, or several with commas: then it's a tuple.
func (p *parser) tuple(empty bool, ends ...string) expr {
	ended := func() bool { return p.isOp(ends...) || p.cur().kind == kBlockEnd || p.cur().kind == kVarEnd }
	if empty && ended() {
		return &list{tuple: true}
	}
	x := p.expression()
	if !p.isOp(",") {
		return x
	}
	xs := []expr{x}
	for p.takeOp(",") && !ended() {
		xs = append(xs, p.expression())
	}
	return &list{items: xs, tuple: true}
}

func (p *parser) postfix(x expr) expr {
	for {
		switch {
		case p.takeOp("."):
			switch t := p.next(); t.kind {
			case kName:
				x = &attr{x, t.text}
			case kInt:
				n, err := strconv.ParseInt(t.text, 10, 64)
				if err != nil {
					p.fail("found %v after a dot, wanted a name", t)
				}
				x = &item{x, &literal{n}}
			default:
				p.fail("found %v after a dot, wanted a name", t)
			}
		case p.takeOp("["):
			x = p.subscript(x)
		case p.isOp("("):
			x = &call{x, p.arguments()}
		default:
			return x
		}
	}
}

func (p *parser) subscript(x expr) expr {
	if p.takeOp("]") { // a[] is a[()]
		return &item{x, &list{tuple: true}}
	}
	part := func() expr {
		if p.isOp(":", "]") {
			return nil
		}
		x := p.expression()
		if !p.isOp(",") {
			return x
		}
		l := &list{items: []expr{x}, tuple: true}
		for p.takeOp(",") {
			l.items = append(l.items, p.expression())
		}
		return l
	}
	lo := part()
	if lo != nil && p.takeOp("]") {
		return &item{x, lo}
	}
	p.expectOp(":")
	s := &slice{x: x, lo: lo, hi: part()}
	if p.takeOp(":") {
		s.step = part()
	}
	p.expectOp("]")
	return s
}

func (p *parser) arguments() (a arguments) {
	p.expectOp("(")
	for first := true; !p.takeOp(")"); first = false {
		if !first {
			p.expectOp(",")
			if p.takeOp(")") {
				break
			}
		}
		switch {
		case p.takeOp("*"):
			a.star = p.expression()
		case p.takeOp("**"):
			a.dblstr = p.expression()
		case p.cur().kind == kName && p.peek(1).kind == kOp && p.peek(1).text == "=":
			n := p.next().text
			p.next()
			if slices.Contains(a.names, n) {
				p.fail("argument %q is given twice", n)
			}
			a.names, a.kw = append(a.names, n), append(a.kw, p.expression())
		default:
			if a.kw != nil || a.star != nil || a.dblstr != nil {
				p.fail("an argument without a name follows one with")
			}
			a.pos = append(a.pos, p.expression())
		}
	}
	return a
}

func (p *parser) filter(x expr) expr {
	f := &filter{x: x, name: p.dotted()}
	if p.isOp("(") {
		f.args = p.arguments()
	}
	return f
}

func (p *parser) test(x expr) expr {
	t := &test{x: x, not: p.takeName("not"), name: p.dotted()}
	switch c := p.cur(); {
	case p.isOp("("):
		t.args = p.arguments()
	case c.kind == kString, c.kind == kInt, c.kind == kFloat, p.isOp("[", "{"),
		c.kind == kName && !slices.Contains([]string{"else", "or", "and", "is", "if", "in", "not"}, c.text):
		t.args.pos = []expr{p.postfix(p.primary())}
	}
	return t
}

func (p *parser) dotted() string {
	s := p.expectName()
	for p.takeOp(".") {
		s += "." + p.expectName()
	}
	return s
}
