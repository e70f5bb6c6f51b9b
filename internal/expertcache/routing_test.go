package expertcache

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func written(t testing.TB, r *Routing) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, r.Header)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Steps {
		if err := w.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoutingRoundTrip(t *testing.T) {
	want := Synthetic{Layers: 3, Experts: 9, Used: 2, Skew: 1}.Routing(5, 4)
	want.Model, want.Bytes, want.Steps[1].IDs[3] = "a \"model\"\n", 12345, NoExpert
	got, err := ReadRouting(bytes.NewReader(written(t, want)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v, wrote %+v", got, err, want)
	}
	if seen := want.distinct(want.Steps[0], 1, make([]bool, 9), nil); len(seen) < 2 || len(seen) > 9 {
		t.Errorf("a prompt of 5 uses the experts %v", seen)
	}
}

// TestRoutingHostile: what is not a trace fails, and takes no memory for what isn't there.
func TestRoutingHostile(t *testing.T) {
	good := written(t, Synthetic{Layers: 2, Experts: 4, Used: 1}.Routing(0, 2))
	line := bytes.IndexByte(good, '\n') + 1
	for name, data := range map[string][]byte{
		"empty":             {},
		"no line":           []byte(`{"format":"leat-routing-1"`),
		"endless line":      bytes.Repeat([]byte("x"), 1<<20),
		"another format":    bytes.Replace(good, []byte("routing-1"), []byte("routing-2"), 1),
		"no layers":         bytes.Replace(good, []byte(`"layers":2`), []byte(`"layers":0`), 1),
		"too many experts":  bytes.Replace(good, []byte(`"experts":4`), []byte(`"experts":65535`), 1),
		"more used than be": bytes.Replace(good, []byte(`"experts_used":1`), []byte(`"experts_used":5`), 1),
		"cut in a step":     good[:len(good)-1],
		"cut in a count":    good[:line+2],
		"no rows":           append(bytes.Clone(good[:line]), 0, 0, 0, 0),
		"endless rows":      append(bytes.Clone(good[:line]), 0xff, 0xff, 0xff, 0xff),
		"many rows, none":   append(bytes.Clone(good[:line]), 0, 0, 1, 0),
		"unknown expert":    append(bytes.Clone(good[:line]), 1, 0, 0, 0, 4, 0, 0, 0),
	} {
		if r, err := ReadRouting(bytes.NewReader(data)); err == nil {
			t.Errorf("%s: %+v", name, r)
		} else if !strings.Contains(err.Error(), "routing trace") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewWriter(io.Discard, Header{Layers: 1, Experts: 2, Used: 3}); err == nil {
		t.Error("3 of 2 experts are used")
	}
	w, err := NewWriter(io.Discard, Header{Layers: 1, Experts: 2, Used: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(Step{2, []uint16{1}}); err == nil {
		t.Error("a step lacks a row")
	}
}

func FuzzRouting(f *testing.F) {
	f.Add(written(f, Synthetic{Layers: 2, Experts: 4, Used: 2}.Routing(3, 2)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadRouting(bytes.NewReader(data))
		if err != nil {
			return
		}
		if len(r.Steps) > 50 || r.Layers*r.Experts > 1<<12 {
			return
		}
		again, err := ReadRouting(bytes.NewReader(written(t, r)))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
		for _, name := range Policies() {
			p, _ := ByName(name)
			if _, err := Replay(r, 1+r.Experts/2, p); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
	})
}

func TestUses(t *testing.T) {
	u := NewUses(Header{Layers: 2, Experts: 3, Used: 2})
	u.Add(Step{Rows: 2, IDs: []uint16{0, 1, 2, 1, 0, NoExpert, 1, 2}})
	u.Add(Step{Rows: 1, IDs: []uint16{2, 0, 2, 0}})
	if got := u.Layers(); !reflect.DeepEqual(got, [][]int64{{3, 1, 1}, {1, 2, 3}}) {
		t.Errorf("found %v", got)
	}
}
