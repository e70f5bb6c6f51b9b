package gguf

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Blocks of another size under a number that a fork gave away are refused, whatever tensor shows it; files of the type itself are not.
func TestExtents(t *testing.T) {
	const own, fork = 64 * 2 * 18, 64 * 34 // bytes of 64 rows of 128 values: of Q2_0, and of a fork's blocks
	data := func(r *raw, n int) *raw { return r.zeros(int(align(int64(r.Len()), 32)) - r.Len() + n) }
	two := func(second uint64, n int) *raw {
		return data(head(3, 0).tensor("small", Q2_0, 0, 128).tensor("large", Q2_0, 64, 128, 64).tensor("norm", F32, 64+second, 8), 64+n)
	}
	garbage := data(head(1, 0).tensor("large", Q1_0, 0, 128, 64), 64*18)
	garbage.Write(bytes.Repeat([]byte{1}, 100))
	for _, c := range []struct {
		name       string
		r          *raw
		want, hint string // "": the file is taken
	}{
		{"its own blocks", two(own, own+32), "", ""},
		{"a fork's smaller blocks", two(fork, fork+32), `tensor "large" of type 42: found 2176 bytes, want 2304 of Q2_0 (64 values in 18 bytes)`, "128 values in 34 bytes"},
		{"larger blocks of nobody known", two(own+320, own+352), `tensor "large" of type 42: found 2624 bytes, want 2304`, "a fork of llama.cpp may have"},
		{"a fork's blocks in the last tensor", data(head(1, 0).tensor("large", Q2_0, 0, 128, 64), fork), "found 2176 bytes, want 2304", "128 values in 34 bytes"},
		{"a download that has not ended", data(head(1, 0).tensor("large", Q2_0, 0, 128, 64), fork-500), "data inside the file", "let the download"},
		{"zeros behind the last tensor", data(head(1, 0).tensor("large", Q1_0, 0, 128, 64), 64*18+5000), "", ""},
		{"more than zeros behind the last tensor", garbage, `tensor "large" of type 41: found 1252 bytes, want 1152 of Q1_0`, "a fork"},
		{"a gap behind a type of one meaning", data(head(2, 0).tensor("a", TQ2_0, 0, 256).tensor("b", F32, 256, 8), 288), "", ""},
	} {
		_, err := Parse(bytes.NewReader(c.r.Bytes()), int64(c.r.Len()))
		var e *FormatError
		switch {
		case c.want == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || !strings.Contains(e.Hint(), c.hint):
			t.Errorf("%s: error %v, want %q and a hint with %q", c.name, err, c.want, c.hint)
		}
	}
}
