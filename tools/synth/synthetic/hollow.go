package synthetic

import (
	"io"
	"os"
)

// noughts is what a hole is made of; a holeWriter knows it by its address.
var noughts = make([]byte, pieceBytes)

// hole is so many bytes that are not written.
type hole struct {
	bytes int64
	done  func(n int)
}

func (h hole) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

func (h hole) WriteTo(w io.Writer) (n int64, err error) {
	for left := h.bytes; left > 0; {
		k, err := w.Write(noughts[:min(left, int64(len(noughts)))])
		n, left = n+int64(k), left-int64(k)
		h.done(k)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// holeWriter writes all but noughts.
type holeWriter struct {
	f       *os.File
	skipped bool
}

func (w *holeWriter) Write(p []byte) (int, error) {
	if len(p) == 0 || &p[0] != &noughts[0] {
		return w.f.Write(p)
	}
	w.skipped = true
	_, err := w.f.Seek(int64(len(p)), io.SeekCurrent)
	return len(p), err
}

// end gives the file its length, which a hole at the end doesn't.
func (w *holeWriter) end() error {
	n, err := w.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	return w.f.Truncate(n)
}
