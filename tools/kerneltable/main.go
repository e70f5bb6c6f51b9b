package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"leat/internal/kernels"
)

const (
	file  = "docs/kernels.md"
	begin = "<!-- kerneltable: begin -->\n"
	end   = "<!-- kerneltable: end -->\n"
)

func main() {
	doc, err := os.ReadFile(file)
	if err == nil {
		if doc, err = renew(doc); err == nil {
			err = os.WriteFile(file, doc, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kerneltable:", err)
		os.Exit(1)
	}
}

// renew puts the table between its marks.
func renew(doc []byte) ([]byte, error) {
	head, rest, ok := bytes.Cut(doc, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, fmt.Errorf("find the table in %s: its marks are missing", file)
	}
	return bytes.Join([][]byte{head, []byte(begin), []byte(table(kernels.Rules())), []byte(end), tail}, nil), nil
}

// table has a line for each variant.
func table(rules []*kernels.Rule) string {
	var b strings.Builder
	b.WriteString("| op | variant | when | the device needs |\n|---|---|---|---|\n")
	for _, r := range rules {
		when, needs := r.When, r.Needs
		if when == "" {
			when = "else"
		}
		if needs == "" {
			needs = "nothing"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Op, r.Variant, when, needs)
	}
	return b.String()
}
