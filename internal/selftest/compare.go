package selftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// MismatchError says how a device's result differs from the wanted one.
type MismatchError struct {
	Case   string // name of the case
	What   string // what was compared, such as "NMSE of dst"
	Found  string // the device's value
	Wanted string // the wanted value
}

// Error names the case, what was compared, and both values.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("self-test %s: %s is %s, want %s", e.Case, e.What, e.Found, e.Wanted)
}

// verify compares got, the memory after the run, with the wanted outputs, and all other memory with its contents before the run. It returns the largest NMSE
// of the outputs.
func (j *job) verify(c *Case, got []byte) (float64, error) {
	worst := 0.0
	touched := bytes.Clone(got) // got, with the contents of outputs from before the run
	for _, w := range j.wants {
		nmse, err := w.verify(c, j.image, got)
		if err != nil {
			return nmse, err
		}
		worst = max(worst, nmse)
		w.blank(touched, j.bytes)
	}
	for _, pair := range j.twins {
		if err := pair[0].equal(c, got, pair[1]); err != nil {
			return worst, err
		}
		pair[0].blank(touched, j.bytes)
		pair[1].blank(touched, j.bytes)
	}
	for _, s := range j.spare {
		copy(touched[s.off:s.off+s.n], j.bytes[s.off:])
	}
	if off := differ(touched, j.bytes[:len(got)]); off >= 0 {
		return worst, &MismatchError{c.String(), fmt.Sprintf("the word at byte %d, which is no output,", off),
			fmt.Sprintf("%#08x", word(got, off)), fmt.Sprintf("%#08x as before", word(j.bytes, off))}
	}
	return worst, nil
}

// verify compares one output with its wanted values, and returns its NMSE.
func (w *want) verify(c *Case, m *image, got []byte) (float64, error) {
	b := got[w.at.off : w.at.off+w.at.n]
	if w.raw != nil {
		if off := differ(b, w.raw); off >= 0 {
			return 0, &MismatchError{c.String(), fmt.Sprintf("the word at byte %d of %s", off, w.name),
				fmt.Sprintf("%#08x", word(b, off)), fmt.Sprintf("%#08x", word(w.raw, off))}
		}
		return 0, nil
	}
	if w.any {
		return 0, nil
	}
	float := func(r, i int) float32 { return floatAt(b, r*w.mat.Stride+i) }
	if w.decode != nil {
		x, err := w.decode(got)
		if err != nil {
			return math.NaN(), &MismatchError{c.String(), w.name, err.Error(), "sums of its bytes"}
		}
		float = func(r, i int) float32 { return x.Row(r)[i] }
	}
	var diff, norm float64
	for r := range w.mat.Rows {
		for i, v := range w.mat.Row(r) {
			g := float(r, i)
			if !finite(v) { // a device may give any value that is not finite
				if finite(g) || math.Float32bits(g) == poison {
					return math.NaN(), &MismatchError{c.String(), fmt.Sprintf("%s[%d][%d]", w.name, r, i), fmt.Sprintf("%v (%#08x)", g, math.Float32bits(g)), "no finite number"}
				}
				continue
			}
			if c.MaxNMSE == nmseExact && math.Float32bits(g) != math.Float32bits(v) || g != g {
				return math.NaN(), &MismatchError{c.String(), fmt.Sprintf("%s[%d][%d]", w.name, r, i),
					fmt.Sprintf("%v (%#08x)", g, math.Float32bits(g)), fmt.Sprintf("%v (%#08x)", v, math.Float32bits(v))}
			}
			d := float64(g) - float64(v)
			diff += d * d
			norm += float64(v) * float64(v)
		}
	}
	nmse := 0.0
	if diff != 0 {
		nmse = diff / max(norm, w.power*float64(w.mat.Rows*w.mat.Cols))
	}
	if !(nmse <= c.MaxNMSE) {
		return nmse, &MismatchError{c.String(), "NMSE of " + w.name, fmt.Sprintf("%.3g", nmse), fmt.Sprintf("at most %.0e", c.MaxNMSE)}
	}
	return nmse, nil
}

// equal checks that two outputs have the same bits, and that they were written.
func (w *want) equal(c *Case, got []byte, other want) error {
	a, b := got[w.at.off:], got[other.at.off:]
	if w.raw != nil {
		if off := differ(a[:w.at.n], b[:w.at.n]); off >= 0 {
			return &MismatchError{c.String(), fmt.Sprintf("the word at byte %d of %s", off, w.name), fmt.Sprintf("%#08x", word(a, off)), fmt.Sprintf("%#08x, the same bits", word(b, off))}
		}
		return nil
	}
	for r := range w.mat.Rows {
		for i := range w.mat.Cols {
			x, y := floatAt(a, r*w.mat.Stride+i), floatAt(b, r*w.mat.Stride+i)
			if math.Float32bits(x) != math.Float32bits(y) && (x == x || y == y) || math.Float32bits(x) == poison {
				return &MismatchError{c.String(), fmt.Sprintf("%s[%d][%d]", w.name, r, i),
					fmt.Sprintf("%v (%#08x)", x, math.Float32bits(x)), fmt.Sprintf("%v (%#08x), the same bits", y, math.Float32bits(y))}
			}
		}
	}
	return nil
}

// finite reports whether x is a number, neither NaN nor infinite.
func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }

// blank replaces the output in dst, a copy of the memory after the run, by its contents from before the run. Any other difference between the two is then a
// write outside the outputs.
func (w *want) blank(dst, before []byte) {
	if w.raw != nil || w.decode != nil || w.any { // all bytes of the span are the output, not only the rows
		copy(dst[w.at.off:w.at.off+w.at.n], before[w.at.off:])
		return
	}
	for r := range w.mat.Rows {
		off := w.at.off + 4*r*w.mat.Stride
		copy(dst[off:off+4*w.mat.Cols], before[off:])
	}
}

// differ is the byte offset of the first 4-byte word in which a and b differ; -1: they are equal.
func differ(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i &^ 3
		}
	}
	return -1
}

// word is the 4-byte word of b at offset off; bytes past the end of b count as 0.
func word(b []byte, off int) uint32 {
	var w [4]byte
	copy(w[:], b[off:])
	return binary.LittleEndian.Uint32(w[:])
}
