package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"time"

	"leat/internal/predict"
)

// contents is the file's JSON. Another version is measured anew.
type contents struct {
	Version int                     `json:"version"`
	Devices map[string]*Device      `json:"devices"`
	Disks   map[string]*diskContent `json:"disks"`
	// Rehearsals are by device, program and model.
	Rehearsals map[string]*predict.Rehearsal `json:"rehearsals"`
}

type diskContent struct {
	Disk
	Asked    int64     `json:"asked"` // bytes that could have been read; a slow disk got to less
	Measured time.Time `json:"measured"`
}

const (
	version   = 2
	mostBytes = 16 << 20 // of the file; a rehearsal takes some kilobytes
	most      = 1e18     // of any number: bytes, flop/s, nanoseconds. No machine comes near
)

func empty() contents {
	return contents{version, map[string]*Device{}, map[string]*diskContent{}, map[string]*predict.Rehearsal{}}
}

// decode returns what of a file's bytes is as encode wrote it, and could have been measured by now. The rest counts as
// never measured.
func decode(data []byte, now time.Time) contents {
	c := empty()
	var parts struct {
		Version                    int
		Devices, Disks, Rehearsals json.RawMessage
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if !json.Valid(data) || d.Decode(&parts) != nil || parts.Version != version || repeats(data) {
		return c
	}
	c.Devices = entries(parts.Devices, func(d *Device) error { return d.check(now) })
	c.Disks = entries(parts.Disks, func(d *diskContent) error { return d.check(now) })
	c.Rehearsals = entries(parts.Rehearsals, func(r *predict.Rehearsal) error {
		if !r.Sound() || r.Chunk < 1 {
			return errors.New("the rehearsal is not whole")
		}
		return nil
	})
	return c
}

// encode is decode's reverse.
func (c *contents) encode() ([]byte, error) {
	data, err := json.MarshalIndent(c, "", "  ")
	return append(data, '\n'), err
}

// entries decodes an object's values, but for those that are not as they were written or fail check.
func entries[T any](data json.RawMessage, check func(*T) error) map[string]*T {
	found := map[string]*T{}
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return found
	}
	for key, text := range all {
		if x := new(T); asWritten(text, x) && numbers(reflect.ValueOf(x)) == nil && check(x) == nil {
			found[key] = x
		}
	}
	return found
}

// asWritten decodes text into x, and reports whether x encodes to the same: no field is missing, unknown, null, or of
// another type or spelling.
func asWritten(text []byte, x any) bool {
	if json.Unmarshal(text, x) != nil {
		return false
	}
	again, err := json.Marshal(x)
	if err != nil {
		return false
	}
	var was, is any
	return json.Unmarshal(text, &was) == nil && json.Unmarshal(again, &is) == nil && reflect.DeepEqual(was, is)
}

// numbers fails where a number anywhere in v is none that measuring gives.
func numbers(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		return numbers(v.Elem())
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n < 0 || float64(n) > most {
			return fmt.Errorf("found %d, wanted 0 to %g", n, most)
		}
	case reflect.Float64:
		if f := v.Float(); !(f >= 0 && f <= most) || math.IsNaN(f) {
			return fmt.Errorf("found %g, wanted 0 to %g", f, most)
		}
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			return nil
		}
		for i := range v.NumField() {
			if err := numbers(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := numbers(v.MapIndex(key)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := numbers(v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// check states what holds for every device that was measured, beside [numbers].
func (d *Device) check(now time.Time) error {
	switch {
	case d.Name == "":
		return errors.New("the device has no name")
	case d.Types == nil || d.Attention == nil:
		return errors.New("a table of the device is missing")
	case d.Link.Idle <= 0 || d.Link.Busy <= 0 || d.Link.Busy > d.Link.Idle:
		return fmt.Errorf("found a link of %g and %g bytes/s", d.Link.Idle, d.Link.Busy)
	case len(d.Link.Bursts) < 2: // earlier versions knew of none
		return fmt.Errorf("found %d bursts", len(d.Link.Bursts))
	case d.DispatchNanos < 1:
		return errors.New("a dispatch takes no time")
	}
	for i, b := range d.Link.Bursts { // predictions draw lines through them
		if b.Bytes <= 0 || b.Seconds <= 0 || i > 0 && (b.Bytes <= d.Link.Bursts[i-1].Bytes || b.Seconds < d.Link.Bursts[i-1].Seconds) {
			return fmt.Errorf("found a burst of %d bytes in %g s behind others", b.Bytes, b.Seconds)
		}
	}
	for t, p := range d.Types {
		if p.ReadPerSec <= 0 {
			return fmt.Errorf("%s is read at %g bytes/s", t, p.ReadPerSec)
		}
	}
	return measuredBy(d.Measured, now)
}

// check refuses measurements of a disk that no disk can give, or that are in the future.
func (d *diskContent) check(now time.Time) error {
	switch {
	case d.Bytes <= 0 || d.Bytes > d.Asked:
		return fmt.Errorf("found %d bytes read of %d", d.Bytes, d.Asked)
	case d.BytesPerSec <= 0 || d.Again <= 0:
		return fmt.Errorf("found a disk of %g and %g bytes/s", d.BytesPerSec, d.Again)
	case d.Cached > CacheWarm:
		return fmt.Errorf("found a cache state of %d", d.Cached)
	}
	return measuredBy(d.Measured, now)
}

// measuredBy fails for a time that has not come: such a measurement would never grow old.
func measuredBy(measured, now time.Time) error {
	if measured.IsZero() || measured.After(now.Add(time.Hour)) { // clocks are set
		return fmt.Errorf("measured at %v, now is %v", measured, now)
	}
	return nil
}

// repeats reports whether an object anywhere in data has a key twice.
func repeats(data []byte) bool {
	type object struct {
		keys  map[string]bool // nil: an array
		value bool            // the next token is one, not a key
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // or one that is too large would end it
	var open []object
	for {
		token, err := d.Token()
		if err != nil {
			return !errors.Is(err, io.EOF)
		}
		if n := len(open) - 1; n >= 0 && open[n].keys != nil && token != json.Delim('}') {
			if key, ok := token.(string); ok && !open[n].value {
				if open[n].keys[key] {
					return true
				}
				open[n].keys[key], open[n].value = true, true
				continue
			}
			open[n].value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, object{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, object{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}

// merge puts what other has on top of c. A device's tables are joined: each process measures what its model needs.
func (c *contents) merge(other *contents) {
	for key, d := range other.Devices {
		joined := *d
		if old := c.Devices[key]; old != nil {
			joined.Types, joined.Attention = maps.Clone(old.Types), maps.Clone(old.Attention)
			maps.Copy(joined.Types, d.Types)
			maps.Copy(joined.Attention, d.Attention)
		}
		c.Devices[key] = &joined
	}
	maps.Copy(c.Disks, other.Disks)
	maps.Copy(c.Rehearsals, other.Rehearsals)
}

// drop removes what is in c as it is in other: what was measured since then stays.
func (c *contents) drop(other *contents) {
	dropSame(c.Devices, other.Devices)
	dropSame(c.Disks, other.Disks)
	dropSame(c.Rehearsals, other.Rehearsals)
}

func dropSame[T any](from, old map[string]*T) {
	for key, x := range old {
		if y := from[key]; y != nil && reflect.DeepEqual(x, y) {
			delete(from, key)
		}
	}
}
