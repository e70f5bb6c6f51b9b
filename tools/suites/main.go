package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "suites: error:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	if len(args) != 1 || suites[args[0]] == nil {
		return fmt.Errorf("found arguments %q, want layers or race", args)
	}
	for _, p := range suites[args[0]].parts {
		fmt.Fprintln(out, strings.Join(p.arguments(), " "))
	}
	return nil
}

// suite is what a stage runs, and what it leaves out.
type suite struct {
	parts   []part
	without map[string]string // by package: why none of its tests is in a part
}

// part is a run of go test: all tests of some packages but for those left out, or only some of them.
type part struct {
	packages []string // without "leat/"
	only     []string // tests; nil: all
	why      string   // only these
	left     []left
}

// left are tests that a part leaves out.
type left struct {
	why   string
	tests []string
}

func (p *part) arguments() (args []string) {
	if p.only != nil {
		args = append(args, "-run", names(p.only))
	}
	var skip []string
	for _, l := range p.left {
		skip = append(skip, l.tests...)
	}
	if skip != nil {
		args = append(args, "-skip", names(skip))
	}
	for _, name := range p.packages {
		args = append(args, "./"+name)
	}
	return args
}

func names(tests []string) string {
	return "^(" + strings.Join(slices.Sorted(slices.Values(tests)), "|") + ")$"
}
