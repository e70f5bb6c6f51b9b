package gensum

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// Sum is the line of a generated file: two results of [Hash].
type Sum struct{ From, Made string }

// Hash names a list of texts; where one ends and the next begins counts.
func Hash(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d\n", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Read reads a file of sums by the generated files' names. There are none where there is no file.
func Read(path string) (map[string]Sum, error) {
	sums := map[string]Sum{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return sums, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			return nil, fmt.Errorf("read sums %s: line %d has %d fields, want a name and two hashes", path, n, len(fields))
		}
		if _, twice := sums[fields[0]]; twice {
			return nil, fmt.Errorf("read sums %s: line %d names %s again", path, n, fields[0])
		}
		sums[fields[0]] = Sum{From: fields[1], Made: fields[2]}
	}
	return sums, lines.Err()
}

// Write writes a file of sums, sorted by name.
func Write(path string, sums map[string]Sum) error {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&text, "%s %s %s\n", name, sums[name].From, sums[name].Made)
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
