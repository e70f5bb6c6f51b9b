package main

import (
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The page and the folder of results, below the root of the project.
const (
	pagePath   = "docs/benchmarks.md"
	resultsDir = "docs/results"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("benchtables: ")
	check := flag.Bool("check", false, "write nothing; fail if the page differs from what the results say")
	root := flag.String("C", ".", "the root of the project")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatal("usage: benchtables [-check] [-C DIR]")
	}
	if err := run(*root, *check); err != nil {
		log.Fatal(err)
	}
}

// run brings the page up to date. With check it only compares.
func run(root string, check bool) error {
	path := filepath.Join(root, pagePath)
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	tables, err := tablesOf(filepath.Join(root, resultsDir))
	if err != nil {
		return err
	}
	want, err := insert(string(have), tables)
	if err != nil {
		return fmt.Errorf("%s: %w", pagePath, err)
	}
	switch {
	case want == string(have):
		return nil
	case check:
		return fmt.Errorf("%s differs from the results, first in line %d: run go run ./tools/benchtables", pagePath, firstDifference(string(have), want))
	}
	return os.WriteFile(path, []byte(want), 0o644)
}

// tablesOf makes the tables of a folder of results, by the names of their markers.
func tablesOf(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil {
		return nil, err
	}
	reports := map[string][]*report{}
	tables := map[string]string{}
	for _, file := range files { // sorted by name
		device := filepath.Base(filepath.Dir(file))
		name := filepath.ToSlash(filepath.Join(device, filepath.Base(file)))
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r, s, err := decode(data)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case s != nil && tables[device+" speed-ups"] != "":
			return nil, fmt.Errorf("%s: a second file of speed-ups", name)
		case s != nil:
			tables[device+" speed-ups"] = s.table()
		default:
			if of := reports[device]; len(of) > 0 && of[0].Device.Name != r.Device.Name {
				return nil, fmt.Errorf("%s: device is %q, the folder's other files have %q", name, r.Device.Name, of[0].Device.Name)
			}
			reports[device] = append(reports[device], r)
		}
	}
	for device, list := range reports {
		tables[device] = deviceTable(list)
	}
	return tables, nil
}

var marker = regexp.MustCompile(`(?m)^<!-- benchtables: (begin|end) (.+) -->$`)

// insert replaces what stands between each pair of markers. Each table must have its markers, and the reverse.
func insert(page string, tables map[string]string) (string, error) {
	var out strings.Builder
	done := map[string]bool{}
	marks := marker.FindAllStringSubmatchIndex(page, -1)
	at := 0
	for i := 0; i < len(marks); i += 2 {
		begin := marks[i]
		name := page[begin[4]:begin[5]]
		if page[begin[2]:begin[3]] != "begin" || i+1 == len(marks) {
			return "", fmt.Errorf("marker %q has no counterpart", page[begin[0]:begin[1]])
		}
		end := marks[i+1]
		if page[end[2]:end[3]] != "end" || page[end[4]:end[5]] != name {
			return "", fmt.Errorf("marker %q follows %q", page[end[0]:end[1]], page[begin[0]:begin[1]])
		}
		table, ok := tables[name]
		if !ok || done[name] {
			return "", fmt.Errorf("markers of %q: no such results, or the second of that name", name)
		}
		done[name] = true
		out.WriteString(page[at:begin[1]] + "\n\n" + table + "\n")
		at = end[0]
	}
	out.WriteString(page[at:])
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if !done[name] {
			return "", fmt.Errorf("no line <!-- benchtables: begin %s -->", name)
		}
	}
	return out.String(), nil
}

// firstDifference is the number of the first line in which two different texts differ.
func firstDifference(a, b string) int {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return i + 1
		}
	}
	return min(len(x), len(y)) + 1
}
