package jinja

type (
	expr interface {
		eval(m *machine, s *scope) Value
	}
	stmt interface {
		exec(m *machine, s *scope) signal
	}
)

// signal is how a statement ended.
type signal uint8

const (
	normal signal = iota
	broke
	continued
)

// Expressions.
type (
	literal struct{ v Value }
	name    struct{ name string }
	list    struct {
		items []expr
		tuple bool
	}
	dict struct{ keys, values []expr }
	attr struct {
		x    expr
		name string
	}
	item  struct{ x, key expr }
	slice struct{ x, lo, hi, step expr } // nil where left out
	call  struct {
		f    expr
		args arguments
	}
	filter struct {
		x    expr // nil in a filter block: its body
		name string
		args arguments
	}
	test struct {
		x    expr
		name string
		args arguments
		not  bool
	}
	not  struct{ x expr }
	sign struct {
		x   expr
		neg bool
	}
	binary struct {
		op   string
		l, r expr
	}
	logic struct { // and, or
		or   bool
		l, r expr
	}
	compare struct { // l op1 r1 op2 r2 …
		l    expr
		ops  []string
		rest []expr
	}
	cond struct{ then, test, other expr } // other may be nil
)

type arguments struct {
	pos    []expr
	names  []string // of kw
	kw     []expr
	star   expr
	dblstr expr
}

// Statements; those that can fail carry their line.
type (
	text   struct{ s string }
	output struct {
		line int
		x    expr
	}
	branch struct {
		test expr // nil: else
		body []stmt
	}
	ifStmt struct {
		line     int
		branches []branch
	}
	forStmt struct {
		line       int
		target     target
		in, filter expr
		body, none []stmt
		recursive  bool
	}
	setStmt struct {
		line   int
		target *target // nil: do
		x      expr
		body   []stmt // of a block set
		filter expr   // over the body; nil: none
	}
	macroStmt struct {
		line int
		f    *macroDef
	}
	callStmt struct {
		line int
		f    *macroDef
		call *call
	}
	filterStmt struct {
		line int
		x    expr
		body []stmt
	}
	withStmt struct {
		line  int
		names []string
		xs    []expr
		body  []stmt
	}
	block struct{ body []stmt } // a scope of its own
	jump  struct{ s signal }
)

// target is a name, an attribute of a namespace, or a tuple of targets.
type target struct {
	name, attr string
	items      []target // of a tuple, then not nil
}

type macroDef struct {
	name     string
	params   []string
	defaults []expr // of the last parameters
	body     []stmt
}
