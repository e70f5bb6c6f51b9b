package calibrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"leat/gguf"
	"leat/internal/predict"
	"leat/tools/testdata"
)

var today = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// example is a file with two entries of each kind, named a and b.
func example() contents {
	c := empty()
	for i, name := range []string{"a", "b"} {
		x := float64(i + 1)
		c.Devices[name] = &Device{
			Name: "device " + name, Measured: today, Link: Link{Idle: 2e9 * x, Busy: 1e9 * x, Bursts: []predict.Burst{{Bytes: 1 << 20, Seconds: 1e-3}, {Bytes: 3 << 20, Seconds: 2e-3}}}, DispatchNanos: 4000, StepNanos: 20000,
			Types: map[string]Products{"F16": {1e9 * x, 1e-6, 1e12}, "Q4_K": {2e9 * x, 0, 2e12}}, Attention: map[string]float64{"F16": 1e11},
		}
		c.Disks[name] = &diskContent{Disk{Rate{1 << 30, 1e9 * x}, 2e9 * x, true, CacheCold}, 1 << 30, today}
		c.Rehearsals[name] = &predict.Rehearsal{
			Steps: []predict.StepShape{{Rows: 1, Context: 1}, {Rows: 8, Context: 64}}, Layers: map[string][]float64{"l": {1e-3 * x, 2e-3}, "m": {0, 1}}, Bytes: map[string]int64{"l": 1 << 20, "m": 7},
			Overhead: []float64{0, 1e-4}, Head: 1e-3, Chunk: 512, Streamed: predict.StreamedLayers{Seconds: 1, Resident: 0.5, Units: 4, Bytes: 1 << 20},
		}
	}
	return c
}

func encoded(t testing.TB, c contents) []byte {
	t.Helper()
	data, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestDecodeGood: what was written is read, in any layout.
func TestDecodeGood(t *testing.T) {
	c := example()
	data := encoded(t, c)
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{data, compact.Bytes()} {
		if got := decode(text, today); !reflect.DeepEqual(got, c) {
			t.Errorf("%s\nbecame %+v", text, got)
		}
	}
}

// damages are what may have become of a value.
func damages(old any) []any {
	list := []any{nil, "x", "", true, -1.0, -1e-9, 1e300, json.Number("1e999"), 0.5, []any{}, []any{nil}, []any{1.0}, map[string]any{}, map[string]any{"unknown": nil}}
	if array, ok := old.([]any); ok {
		list = append(list, append(slices.Clone(array), 1.0), array[:max(0, len(array)-1)])
	}
	if object, ok := old.(map[string]any); ok {
		more := maps.Clone(object)
		more["unknown"] = 1.0
		list = append(list, more)
	}
	return list
}

// places calls f for every value inside v, with what sets it.
func places(v any, path string, f func(path string, old any, set func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			old := v[key]
			f(path+"/"+key, old, func(x any) { v[key] = x })
			places(old, path+"/"+key, f)
		}
	case []any:
		for i, old := range v {
			at := fmt.Sprintf("%s/%d", path, i)
			f(at, old, func(x any) { v[i] = x })
			places(old, at, f)
		}
	}
}

// TestDecodeDamaged puts each damage at each place of a file. The entry around it is measured anew, unless it still says
// what may have been measured; the others are believed.
func TestDecodeDamaged(t *testing.T) {
	good := example()
	var tree any
	if err := json.Unmarshal(encoded(t, good), &tree); err != nil {
		t.Fatal(err)
	}
	tried := 0
	places(tree, "", func(path string, old any, set func(any)) {
		defer set(old)
		for _, damage := range damages(old) {
			set(damage)
			data, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			tried++
			got := decode(data, today)
			sound(t, &got, today)
			words := strings.Split(path, "/")[1:]
			if len(words) < 2 { // a whole table
				continue
			}
			want := empty()
			want.merge(&good)
			for i, table := range []any{want.Devices, want.Disks, want.Rehearsals} {
				if words[0] == []string{"devices", "disks", "rehearsals"}[i] {
					reflect.ValueOf(table).SetMapIndex(reflect.ValueOf(words[1]), reflect.Value{})
				}
			}
			if !mustGo(path, old, damage) { // perhaps a measurement: then it says what is written there
				switch words[0] {
				case "devices":
					delete(got.Devices, words[1])
				case "disks":
					delete(got.Disks, words[1])
				case "rehearsals":
					delete(got.Rehearsals, words[1])
				}
			}
			for i, same := range []bool{reflect.DeepEqual(got.Devices, want.Devices), reflect.DeepEqual(got.Disks, want.Disks), reflect.DeepEqual(got.Rehearsals, want.Rehearsals)} {
				if !same {
					t.Errorf("%s: %v instead of %v: wrong of kind %d", path, damage, old, i)
				}
			}
		}
	})
	if tried < 500 {
		t.Errorf("only %d damages were tried", tried)
	}
}

// mustGo reports whether no measurement can have written damage in place of old.
func mustGo(path string, old, damage any) bool {
	if damage == nil || reflect.TypeOf(damage) != reflect.TypeOf(old) {
		return true
	}
	switch damage := damage.(type) {
	case float64:
		return damage < 0 || damage > most
	case string:
		return damage == "" || strings.HasSuffix(path, "/measured")
	case map[string]any:
		return damage["unknown"] != nil && !strings.HasSuffix(path, "/types") && !strings.HasSuffix(path, "/attention")
	case []any:
		return len(damage) != len(old.([]any))
	}
	return false
}

// sound fails where something that was decoded can't have been measured, or does harm where it is used.
func sound(t testing.TB, c *contents, now time.Time) {
	t.Helper()
	for key, d := range c.Devices {
		if err := d.check(now); err != nil {
			t.Errorf("device %q: %v", key, err)
		}
		d.complete(Wanted{Types: []gguf.Type{gguf.Q4_K}, KV: gguf.F16})
		s := Speeds(d, nil, gguf.F16)
		if !(s.Link.BytesPerSec > 0) || s.Kernels.DispatchTime <= 0 || s.HostOverheadPerStep < 0 {
			t.Errorf("device %q: %+v", key, s)
		}
		d.Types["X"], d.Attention["X"] = Products{1, 0, 0}, 0 // as measure does
		delete(d.Types, "X")
		delete(d.Attention, "X")
	}
	for key, d := range c.Disks {
		if err := d.check(now); err != nil {
			t.Errorf("disk %q: %v", key, err)
		}
	}
	for key, r := range c.Rehearsals {
		if !r.Sound() || r.Chunk < 1 {
			t.Errorf("rehearsal %q: %+v", key, r)
		}
	}
}

// TestDecodeOther: what is no such file at all, or one of which a part is there twice, is no reason to stop.
func TestDecodeOther(t *testing.T) {
	good := string(encoded(t, example()))
	_, twice, _ := strings.Cut(good, `"devices": {`)
	for name, text := range map[string]string{
		"empty": "", "blank": "\n", "null": "null", "an array": "[]", "text": `"x"`, "broken": "{broken", "not a number": strings.Replace(good, "4000", "NaN", 1),
		"infinite": strings.Replace(good, "4000", "Infinity", 1), "another version": strings.Replace(good, `"version": 2`, `"version": 3`, 1),
		"more after it": good + "{}", "binary": "\x00\xff", "an unknown table": strings.Replace(good, `"devices"`, `"x": {}, "devices"`, 1),
		"a device twice": strings.Replace(good, `"devices": {`, `"devices": {`+twice[:strings.Index(twice, `"b"`)], 1),
		"a field twice":  strings.Replace(good, `"dispatch_ns": 4000`, `"dispatch_ns": 4000, "dispatch_ns": 4000`, 1),
		"deep":           strings.Repeat("[", 20000),
	} {
		c := decode([]byte(text), today)
		if len(c.Devices)+len(c.Disks)+len(c.Rehearsals) > 0 || c.Devices == nil || c.Disks == nil || c.Rehearsals == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for n := range len(good) - 2 {
		if c := decode([]byte(good[:n]), today); len(c.Devices)+len(c.Disks)+len(c.Rehearsals) > 0 {
			t.Fatalf("%d bytes: %+v", n, c)
		}
	}
	if c := decode([]byte(good), today.Add(-2*time.Hour)); len(c.Devices)+len(c.Disks) > 0 {
		t.Errorf("measured tomorrow: %+v", c)
	}
}

// TestFaultFile: a table that is null made leat panic.
func TestFaultFile(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testdata.Dir(t), "faults", "calibration-attnull.json"))
	if err != nil {
		t.Skip(err)
	}
	later := today.AddDate(100, 0, 0)
	c := decode(data, later)
	sound(t, &c, later)
	if len(c.Devices) != 0 || len(c.Disks) != 1 {
		t.Errorf("%d devices and %d disks are believed, want 0 and 1", len(c.Devices), len(c.Disks))
	}
}

// TestTogether: what several processes measure, each on a file it has read before, all stays.
func TestTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calibration.json")
	log := slog.New(slog.DiscardHandler)
	const many = 8
	var files []*File
	for range many {
		files = append(files, Open(path))
	}
	var all sync.WaitGroup
	for i, f := range files {
		all.Go(func() {
			d := *example().Devices["a"]
			d.Types = map[string]Products{fmt.Sprint("T", i): {1, 0, 1}}
			f.own.Devices["a"] = &d
			f.keep(log)
			key := fmt.Sprint("r", i)
			if _, err := f.Rehearsal(key, 1, log, func() (*predict.Rehearsal, error) { return example().Rehearsals["a"], nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c := Open(path).data
	if len(c.Rehearsals) != many || c.Devices["a"] == nil || len(c.Devices["a"].Types) != many {
		t.Errorf("kept: %s", encoded(t, c))
	}
}

// TestForget: what is forgotten goes from the file, but not what another process measured since.
func TestForget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calibration.json")
	old := example()
	if err := os.WriteFile(path, encoded(t, old), 0o644); err != nil {
		t.Fatal(err)
	}
	f, other := Open(path), Open(path)
	f.Forget()
	fresh := *old.Disks["b"]
	fresh.Again = 5e9
	other.own.Disks["b"] = &fresh
	for _, x := range []*File{other, f} {
		if err := x.save(); err != nil {
			t.Fatal(err)
		}
	}
	want := empty()
	want.Disks["b"] = &fresh
	if got := Open(path).data; !reflect.DeepEqual(got, want) {
		t.Errorf("left: %s", encoded(t, got))
	}
}

// FuzzDecode: no bytes harm, and what is believed of them is written and read again as it is.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, example()))
	f.Add([]byte(`{"version":2,"devices":{"a":{"attention":null}},"disks":{"":null},"rehearsals":{"a":{"steps":[{"rows":1,"context":1}],"layers":{"":null},"bytes":{},"rest":[0]}}}`))
	f.Add([]byte(`{"version":2,"devices":null,"disks":[],"rehearsals":{"a":1e999}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := decode(data, today)
		sound(t, &c, today)
		if again := decode(encoded(t, c), today); !reflect.DeepEqual(again, c) {
			t.Errorf("%+v became %+v", c, again)
		}
	})
}
