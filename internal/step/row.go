package step

import (
	"fmt"

	"leat/internal/kernels"
	"leat/internal/kv"
	"leat/internal/record"
	"leat/shaders"
)

// The roles that rows can have.
const (
	Prompt = kernels.Prompt // a row of a prompt
	Decode = kernels.Decode // a row that extends the sequence by a sampled token
)

// Row is one token of a step.
type Row struct {
	Seq      *kv.Sequence // sequence whose KV cache the row reads and extends
	Token    int32        // id of the token
	Position int          // position of the token in Seq
	Cell     int          // cell of the KV cache that the row's keys and values are written to; must equal Position
	Parent   int          // index in the step of the row that precedes this one in Seq; FromCache: it is the step's first row of Seq
	Role     kernels.Role // Prompt or Decode, the same for all rows of a sequence
	Logits   bool         // what the step computes, logits, their argmax or hidden states, is part of the result for this row
}

// FromCache is the Parent of a row that follows the tokens in its sequence's KV cache, not a row of the step.
const FromCache = -1

// NewRow makes a row for a token of seq, to be appended to rows; rows of one sequence must be adjacent. Its Parent is the last of rows if that
// is a row of seq, else FromCache.
func NewRow(rows []Row, seq *kv.Sequence, token int32, position int, role kernels.Role) Row {
	r := Row{Seq: seq, Token: token, Position: position, Cell: position, Parent: FromCache, Role: role}
	if n := len(rows); n > 0 && rows[n-1].Seq == seq {
		r.Parent = n - 1
	}
	return r
}

// check validates the rows of a step and appends the indices of those that need logits to logitRows.
func (s *Stepper) check(rows []Row, logitRows []int) ([]int, error) {
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
			logitRows = append(logitRows, i)
		}
	}
	if len(logitRows) > s.Plan.LogitRows {
		return nil, fmt.Errorf("step: %d rows ask for logits, at most %d may", len(logitRows), s.Plan.LogitRows)
	}
	return logitRows, nil
}

// parentOf is the Parent that the next row of a sequence must have: the index in rows, the step's rows so far, of the sequence's last row. It is FromCache if
// none of rows is of the sequence: then its preceding tokens are in the KV cache.
func parentOf(rows []Row, seq *kv.Sequence) int {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Seq == seq {
			return i
		}
	}
	return FromCache
}

// spans appends to list the spans of rows that are recorded together: adjacent prompt rows of one sequence, or up to [shaders.FewRows] adjacent decode rows
// of any sequences. Rows whose index is in logitRows, which ascends, count as decode rows.
func spans(list []record.Rows, rows []Row, logitRows []int) []record.Rows {
	for i := range rows {
		r := &rows[i]
		role := r.Role
		if len(logitRows) > 0 && logitRows[0] == i {
			role, logitRows = Decode, logitRows[1:]
		}
		if n := len(list); n > 0 && list[n-1].Role == role && (role == Decode && list[n-1].N < shaders.FewRows || role == Prompt && r.Seq == rows[i-1].Seq) {
			last := &list[n-1]
			last.N++
			last.Longest = max(last.Longest, r.Position+1)
			last.OneRun = last.OneRun && r.Seq == rows[i-1].Seq && r.Position > rows[i-1].Position
			continue
		}
		list = append(list, record.Rows{From: i, N: 1, Role: role, Longest: r.Position + 1, OneRun: true})
	}
	return list
}
