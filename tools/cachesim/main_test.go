package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"leat/internal/expertcache"
)

func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if err := run(args, &out, &errs); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out.String()
}

// A trace's rates come out alike in each format, and grow with the slots.
func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	trace := expertcache.Synthetic{Layers: 4, Experts: 16, Used: 2, Skew: 1}.Routing(3, 60)
	w, err := expertcache.NewWriter(f, trace.Header)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range trace.Steps {
		if err := w.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	args := []string{"-sizes", "8,25%,100%", "-policies", "lru,weighted:5", path, path}
	var got table
	if err := json.Unmarshal([]byte(output(t, append([]string{"-json"}, args...)...)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Steps != 2*61 || len(got.Rows) != 3 || got.Rows[1].Slots != 16 || len(got.Rows[2].Results) != 3 {
		t.Fatalf("%+v", got)
	}
	if last := got.Rows[2].Results; last[0].Late.HitRate() != 1 || last[2].Policy != "optimum" {
		t.Errorf("all experts have slots: %+v", last)
	}
	for p := range 3 {
		a, b := got.Rows[0].Results[p], got.Rows[1].Results[p]
		if a.HitRate() > b.HitRate() || a.Decode.Hits+a.Prefill.Hits != a.Hits || a.Prefill.Misses == 0 {
			t.Errorf("%s: %+v with 8 slots, %+v with 16", a.Policy, a, b)
		}
	}
	text := output(t, args...)
	if !strings.Contains(text, "synthetic: 4 layers of 16 experts, 2 used") || !strings.Contains(text, "100.0%        100.0%        100.0%\n") {
		t.Error(text)
	}
	svg, uses := filepath.Join(t.TempDir(), "rates.svg"), filepath.Join(t.TempDir(), "uses.svg")
	output(t, append([]string{"-svg", svg, "-uses", uses, "-title", "a trace"}, args...)...)
	for path, want := range map[string][]string{svg: {"a trace", "weighted:5", "optimum"}, uses: {"a trace", "layer with experts"}} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(string(data), text) {
				t.Errorf("%s lacks %q", path, text)
			}
		}
	}
	if lines := strings.Count(output(t, append([]string{"-csv", "-all"}, args...)...), "\n"); lines != 1+3*3 {
		t.Errorf("%d lines of CSV", lines)
	}
}

// TestCold: nothing is there at first, and a cache for all has each expert miss once.
func TestCold(t *testing.T) {
	var got table
	if err := json.Unmarshal([]byte(output(t, "-json", "-layers", "2", "-experts", "8", "-used", "2", "-steps", "50", "-sizes", "100%", "-policies", "lru", "-cold", "3")), &got); err != nil {
		t.Fatal(err)
	}
	if r := got.Rows[0].Results[0]; got.Steps != 3 || r.Hits+r.Misses != 3*2*2 || r.Misses < 4 || r.Misses > 12 || r.Evictions != 0 {
		t.Errorf("%d steps, %+v", got.Steps, r)
	}
	first, late := output(t, "-steps", "200", "-sizes", "50%", "-policies", "lru", "-cold", "2"), output(t, "-steps", "200", "-sizes", "50%", "-policies", "lru")
	if first == late {
		t.Errorf("cold as warm: %s", first)
	}
}

func TestInTurns(t *testing.T) {
	step := func(list ...int) (steps []expertcache.Step) {
		for _, rows := range list {
			steps = append(steps, expertcache.Step{Rows: rows})
		}
		return steps
	}
	for turns, want := range map[int][]int{0: {1, 2, 3, 4, 5, 6}, 1: {1, 4, 2, 5, 3, 6}, 2: {1, 2, 4, 5, 3, 6}, 9: {1, 2, 3, 4, 5, 6}} {
		if got := inTurns([][]expertcache.Step{step(1, 2, 3), step(4, 5, 6)}, turns); !reflect.DeepEqual(got, step(want...)) {
			t.Errorf("turns of %d: %v", turns, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, args := range [][]string{
		{"-sizes", "0"}, {"-sizes", "101%"}, {"-sizes", "x"}, {"-policies", "fifo"}, {"-used", "200"}, {"-steps", "1"}, {"-cold", "-1"}, {"-turns", "-1"}, {"-cold", "2", "-all"},
		{filepath.Join(t.TempDir(), "none")}, {"main.go"},
	} {
		var out, errs bytes.Buffer
		if err := run(append([]string{"-steps", "4", "-layers", "2"}, args...), &out, &errs); err == nil {
			t.Errorf("%q: %s", args, out.String())
		}
	}
}
