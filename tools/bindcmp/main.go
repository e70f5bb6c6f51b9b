package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	crash := flag.Duration("crash", 0, "also make pipelines while the garbage collector runs, for so long with each binding")
	factsOnly := flag.Bool("facts", false, "compare constants and layouts only")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "bindcmp: error: it takes no arguments")
		os.Exit(2)
	}
	if err := run(os.Stdout, *factsOnly, *crash); err != nil {
		fmt.Fprintln(os.Stderr, "bindcmp: error:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, factsOnly bool, crash time.Duration) error {
	ours, theirs, err := loadFacts()
	if err != nil {
		return err
	}
	var wrong []string
	var comparisons []*comparison
	for _, their := range theirs {
		c := compare(ours, their)
		comparisons = append(comparisons, c)
		wrong = append(wrong, c.wrong...)
	}
	printFacts(w, ours, comparisons)
	if !factsOnly {
		more, err := runBindings(w, crash)
		if err != nil {
			return err
		}
		wrong = append(wrong, more...)
	}
	if len(wrong) > 0 {
		fmt.Fprintf(w, "\n## Disagreements\n\n")
		for _, what := range wrong {
			fmt.Fprintln(w, "-", what)
		}
		return fmt.Errorf("%d disagreements", len(wrong))
	}
	return nil
}
