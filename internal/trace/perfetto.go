package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// event is one of the trace-event format, which Perfetto and Chrome read.
type event struct {
	Name     string   `json:"name"`
	Category string   `json:"cat,omitempty"`
	Phase    string   `json:"ph"`
	Process  int      `json:"pid"`
	Thread   int      `json:"tid"`
	Time     *float64 `json:"ts,omitempty"` // µs
	Duration *float64 `json:"dur,omitempty"`
	Args     any      `json:"args,omitempty"`
}

// thread is a row of the picture.
type thread struct {
	lane  Lane
	track int
}

type (
	nameArgs struct {
		Name string `json:"name"`
	}
	orderArgs struct {
		Order int `json:"sort_index"`
	}
	spanArgs struct {
		Step  int   `json:"step"`
		Bytes int64 `json:"bytes,omitempty"`
	}
)

// process is the number of the only one there is.
const process = 1

// WritePerfetto writes spans as trace-event JSON: one process called title, with a named
// thread for each lane and track, disks first.
func WritePerfetto(w io.Writer, title string, spans []Span) error {
	out := bufio.NewWriter(w)
	before := "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
	var err error
	write := func(e event) {
		var text []byte
		if err == nil {
			text, err = json.Marshal(e)
		}
		if err == nil {
			_, err = out.WriteString(before + string(text))
		}
		before = ",\n"
	}
	write(event{Name: "process_name", Phase: "M", Process: process, Args: nameArgs{title}})
	threads := rows(spans)
	for i, t := range threads {
		write(event{Name: "thread_name", Phase: "M", Process: process, Thread: i + 1, Args: nameArgs{fmt.Sprintf("%s %d", t.lane, t.track)}})
		write(event{Name: "thread_sort_index", Phase: "M", Process: process, Thread: i + 1, Args: orderArgs{i + 1}})
	}
	for _, s := range spans {
		begin, took := microseconds(s.Begin), microseconds(s.End-s.Begin)
		i, _ := slices.BinarySearchFunc(threads, thread{s.Lane, s.Track}, compare)
		write(event{
			Name: s.Name, Category: string(s.Lane), Phase: "X", Process: process, Thread: i + 1,
			Time: &begin, Duration: &took, Args: spanArgs{s.Step, s.Bytes},
		})
	}
	if err == nil {
		_, err = out.WriteString("\n]}\n")
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write a trace of %d spans: %w", len(spans), err)
	}
	return nil
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// rows lists the threads of spans in the order in which they are shown.
func rows(spans []Span) []thread {
	seen := map[thread]bool{}
	var list []thread
	for _, s := range spans {
		if t := (thread{s.Lane, s.Track}); !seen[t] {
			seen[t] = true
			list = append(list, t)
		}
	}
	slices.SortFunc(list, compare)
	return list
}

func compare(a, b thread) int {
	return cmp.Or(cmp.Compare(rank(a.lane), rank(b.lane)), cmp.Compare(a.lane, b.lane), cmp.Compare(a.track, b.track))
}

// rank is a lane's place from top to bottom; unknown lanes come last.
func rank(l Lane) int {
	if i := slices.Index(lanes, l); i >= 0 {
		return i
	}
	return len(lanes)
}
