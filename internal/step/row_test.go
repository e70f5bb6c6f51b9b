package step

import (
	"slices"
	"strings"
	"testing"

	"leat/internal/arch"
	"leat/internal/kv"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/vk/mem"
	"leat/vk/vktest"
)

// A step refuses rows whose words it gives no meaning yet: a parent that is not the sequence's row before, a cell that is not the
// position, rows of one sequence in two roles.
func TestRowsAreChecked(t *testing.T) {
	heap := mem.NewHeap(vktest.Open(t), "VRAM", 1<<20)
	t.Cleanup(heap.Close)
	cache, err := kv.New(heap, plan.KV{PageBytes: 256, Pages: 4, Blocks: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cache.Close)
	var seqs [2]*kv.Sequence
	for i := range seqs {
		if seqs[i], err = cache.NewSequence(plan.PagePositions); err != nil {
			t.Fatal(err)
		}
	}
	s := &Stepper{Options: Options{Plan: &plan.Plan{Chunk: 4, LogitRows: 2}, Hyper: &arch.Hyper{VocabSize: 10}}}
	run := func(n int) (rows []Row) {
		for i := range n {
			rows = append(rows, NewRow(rows, seqs[0], int32(i), i, Prompt))
		}
		return rows
	}
	with := func(change func(rows []Row)) []Row {
		rows := run(3)
		change(rows)
		return rows
	}
	two := append(run(2), NewRow(run(2), seqs[1], 3, 5, Decode))
	two = append(two, Row{Seq: seqs[0], Token: 1, Position: 2, Cell: 2, Parent: 1, Role: Prompt, Logits: true})
	for _, c := range []struct {
		name string
		rows []Row
		want string // "": it is taken
	}{
		{"a run", run(4), ""},
		{"two sequences of two roles", two, ""},
		{"none", nil, "found 0 rows"},
		{"too many", run(5), "found 5 rows"},
		{"a token outside of the vocabulary", with(func(r []Row) { r[1].Token = 10 }), "found token 10"},
		{"a position beyond the cache", with(func(r []Row) { r[2].Position, r[2].Cell = 32, 32 }), "found position 32"},
		{"another cell", with(func(r []Row) { r[2].Cell = 1 }), "row 2: found cell 1"},
		{"a parent two rows before", with(func(r []Row) { r[2].Parent = 0 }), "row 2: found parent 0, wanted 1"},
		{"a parent in the cache", with(func(r []Row) { r[1].Parent = FromCache }), "row 1: found parent -1, wanted 0"},
		{"two roles of one sequence", with(func(r []Row) { r[2].Role = Decode }), "row 2: found a role"},
		{"many that ask", with(func(r []Row) { r[0].Logits, r[1].Logits, r[2].Logits = true, true, true }), "3 rows ask for logits"},
	} {
		asked, err := s.check(c.rows, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: found %v, wanted %q", c.name, err, c.want)
		}
		if c.name == "two sequences of two roles" && !slices.Equal(asked, []int{3}) {
			t.Errorf("%s: %v ask", c.name, asked)
		}
	}
	for _, c := range []struct {
		name  string
		rows  []Row
		asked []int
		want  []record.Rows
	}{
		{"a prompt", run(3), nil, []record.Rows{{N: 3, Longest: 3, OneRun: true}}},
		{"a prompt whose last row asks", run(3), []int{2}, []record.Rows{{N: 2, Longest: 2, OneRun: true}, {From: 2, N: 1, Role: Decode, Longest: 3, OneRun: true}}},
		{"two sequences", two, nil, []record.Rows{{N: 2, Longest: 2, OneRun: true}, {From: 2, N: 1, Role: Decode, Longest: 6, OneRun: true}, {From: 3, N: 1, Longest: 3, OneRun: true}}},
	} {
		if got := spans(nil, c.rows, c.asked); !slices.Equal(got, c.want) {
			t.Errorf("%s: spans %+v, want %+v", c.name, got, c.want)
		}
	}
	many := run(4)
	for i := range 17 {
		r := NewRow(many, seqs[1], 1, i, Decode)
		many = append(many, r)
	}
	var sizes []int
	for _, s := range spans(nil, many, nil) {
		sizes = append(sizes, s.N)
	}
	if !slices.Equal(sizes, []int{4, 8, 8, 1}) {
		t.Errorf("4 rows of a prompt and 17 to decode are spans of %v", sizes)
	}
}
