package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

func printFacts(w io.Writer, ours *facts, comparisons []*comparison) {
	fmt.Fprintf(w, "## Facts\n\nOurs: %d constants, %d structs, %d commands.\n\n", len(ours.constants), len(ours.names), count(ours.commands))
	rows := [][]string{{"", "constants equal", "of these with the same name", "left out: name means several", "structs equal", "fields equal",
		"its structs, commands", "our structs, commands of the same name", "left out: known to be older there", "different"}}
	for _, c := range comparisons {
		rows = append(rows, []string{
			c.their.path + " " + c.their.version, fmt.Sprint(c.constants), fmt.Sprint(c.byName), fmt.Sprint(c.ambiguous),
			fmt.Sprint(c.structs), fmt.Sprint(c.fields),
			fmt.Sprintf("%d, %d", len(c.their.layouts), count(c.their.commands)),
			fmt.Sprintf("%d, %d", c.sharedNames, c.sharedCommands), fmt.Sprint(len(c.excused)), fmt.Sprint(len(c.wrong)),
		})
	}
	printTable(w, transpose(rows))
	fmt.Fprintln(w, "\nCounts are of what was compared. A struct is equal when its size and each field's name, offset and size are.")
	for _, c := range comparisons {
		for _, excuse := range c.excused {
			fmt.Fprintf(w, "Left out against %s, whose headers are older: %s.\n", c.their.path, excuse)
		}
	}
}

func count(set map[string]bool) (n int) {
	for _, is := range set {
		if is {
			n++
		}
	}
	return n
}

func transpose(rows [][]string) [][]string {
	turned := make([][]string, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			turned[i] = append(turned[i], cell)
		}
	}
	return turned
}

// printTable prints markdown that a person can read too; the first row is the head.
func printTable(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for i, row := range rows {
		for j, cell := range row {
			width := widths[j]
			if j == 0 {
				width = -width // to the left
			}
			fmt.Fprintf(w, "| %*s ", width, cell)
		}
		fmt.Fprintln(w, "|")
		if i == 0 {
			fmt.Fprintln(w, "|:---|"+strings.Repeat("---:|", len(widths)-1))
		}
	}
}
