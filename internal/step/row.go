package step

import (
	"fmt"

	"leat/internal/kv"
	"leat/internal/record"
	"leat/shaders"
)

// Role says what a row is for.
type Role uint8

// The roles of rows.
const (
	Prompt Role = iota // a given token
	Decode             // a sampled token
)

// Row is one token of a step.
type Row struct {
	Seq      *kv.Sequence
	Token    int32
	Position int  // in its sequence
	Cell     int  // of its sequence's cache, that its keys and values are written to: its position
	Parent   int  // the row of this step that it follows; FromCache: it follows what is in the cache
	Role     Role // all rows of a sequence have one
	Logits   bool // it wants its logits (or, in a greedy step, its argmax)
}

// FromCache is the parent of a row that follows the tokens in its sequence's cache.
const FromCache = -1

// Next is the row behind the others of one sequence, the last of rows: token at a position.
func Next(rows []Row, seq *kv.Sequence, token int32, position int, role Role) Row {
	r := Row{Seq: seq, Token: token, Position: position, Cell: position, Parent: FromCache, Role: role}
	if n := len(rows); n > 0 && rows[n-1].Seq == seq {
		r.Parent = n - 1
	}
	return r
}

// check validates a batch and appends the rows that want logits to asked.
func (s *Stepper) check(rows []Row, asked []int) ([]int, error) {
	if len(rows) == 0 || len(rows) > s.Plan.Chunk {
		return nil, fmt.Errorf("step: found %d rows, wanted 1 to %d", len(rows), s.Plan.Chunk)
	}
	for i := range rows {
		r := &rows[i]
		if r.Token < 0 || int(r.Token) >= s.Hyper.VocabSize {
			return nil, fmt.Errorf("step: row %d: found token %d, wanted 0 to %d", i, r.Token, s.Hyper.VocabSize-1)
		}
		if r.Position < 0 || r.Position >= r.Seq.Cap() {
			return nil, fmt.Errorf("step: row %d: found position %d, wanted 0 to %d", i, r.Position, r.Seq.Cap()-1)
		}
		if r.Cell != r.Position {
			return nil, fmt.Errorf("step: row %d: found cell %d, wanted that of its position, %d", i, r.Cell, r.Position)
		}
		if want := parentOf(rows[:i], r.Seq); r.Parent != want {
			return nil, fmt.Errorf("step: row %d: found parent %d, wanted %d, the sequence's row before it", i, r.Parent, want)
		}
		if r.Parent != FromCache && rows[r.Parent].Role != r.Role {
			return nil, fmt.Errorf("step: row %d: found a role other than that of its sequence's row %d", i, r.Parent)
		}
		if r.Logits {
			asked = append(asked, i)
		}
	}
	if len(asked) > s.Plan.LogitRows {
		return nil, fmt.Errorf("step: %d rows ask for logits, at most %d may", len(asked), s.Plan.LogitRows)
	}
	return asked, nil
}

// parentOf is the last row of a sequence.
func parentOf(rows []Row, seq *kv.Sequence) int {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Seq == seq {
			return i
		}
	}
	return FromCache
}

// shape is what recordings need to know of rows.
func shape(rows []Row, kept bool) record.Rows {
	of := record.Rows{N: len(rows), Kept: kept, OneRun: true, Grouped: len(rows) > shaders.FewRows}
	for i := range rows {
		of.Longest = max(of.Longest, rows[i].Position+1)
		if i > 0 && (rows[i].Seq != rows[0].Seq || rows[i].Position <= rows[i-1].Position) {
			of.OneRun = false
		}
	}
	return of
}
