package conform

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"leat/internal/selftest"
)

// Summary collects results by kernel, in the order they come.
type Summary struct {
	rows []*row
	by   map[string]*row
}

type row struct {
	kernel        string
	cases         int
	worst, wanted float64
	took          time.Duration
}

// Add counts a case that passed.
func (s *Summary) Add(r selftest.Result) {
	if s.by == nil {
		s.by = map[string]*row{}
	}
	x := s.by[r.Case.Kernel]
	if x == nil {
		x = &row{kernel: r.Case.Kernel}
		s.by[x.kernel] = x
		s.rows = append(s.rows, x)
	}
	x.cases++
	x.took += r.Took
	x.worst = max(x.worst, r.NMSE)
	x.wanted = max(x.wanted, r.Case.MaxNMSE)
}

// Print writes a table: kernel, cases passed, the worst NMSE among them, the NMSE allowed, the time with the reference's.
func (s *Summary) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "kernel\tcases\tworst NMSE\tallowed\ttime")
	for _, r := range s.rows {
		fmt.Fprintf(t, "%s\t%d\t%.1e\t%.0e\t%v\n", r.kernel, r.cases, r.worst, r.wanted, r.took.Round(time.Millisecond))
	}
	return t.Flush()
}
