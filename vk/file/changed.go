package file

import (
	"fmt"
	"io/fs"
	"os"
	"time"
)

// ChangedError says that a file was written to, or another put in its place, while it was in use: what would be read from now on
// does not belong to what was read before.
type ChangedError struct {
	Path                  string
	FoundBytes, WantBytes int64
	Found, Want           time.Time // of the last change
	Replaced              bool      // it is another file
}

func (e *ChangedError) Error() string {
	if e.Replaced {
		return fmt.Sprintf("read %s: found another file under this name, wanted the one that was opened before", e.Path)
	}
	return fmt.Sprintf("read %s: found %d bytes, written to at %s, wanted %d bytes, of %s as when it was opened",
		e.Path, e.FoundBytes, e.Found.Format(time.RFC3339Nano), e.WantBytes, e.Want.Format(time.RFC3339Nano))
}

// Hint says what to do.
func (e *ChangedError) Hint() string {
	return "the file changed while it was in use: load the model again once nothing writes to it"
}

// version tells a file from itself after it was written to.
type version struct{ bytes, modified int64 }

func versionOf(info fs.FileInfo) version { return version{info.Size(), info.ModTime().UnixNano()} }

// Is demands that f is the file that info, from an earlier look, is of, and as it was then: one for each part.
func (f *File) Is(infos ...fs.FileInfo) error {
	parts := f.parts
	if parts == nil {
		parts = []*File{f}
	}
	if len(infos) != len(parts) {
		return fmt.Errorf("compare %s with %d earlier looks: it has %d parts", f.path, len(infos), len(parts))
	}
	for i, part := range parts {
		now, err := part.buffered.Stat()
		if err != nil {
			return err
		}
		if !os.SameFile(now, infos[i]) {
			return &ChangedError{Path: part.path, Replaced: true}
		}
		part.first = versionOf(infos[i])
		if err := part.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// Unchanged fails with a [*ChangedError] once the file was written to after it was opened, by whatever program. Read asks it after each
// read, so what it gave is of the file as it was.
func (f *File) Unchanged() error {
	for _, part := range f.parts {
		if err := part.Unchanged(); err != nil {
			return err
		}
	}
	if f.parts != nil {
		return nil
	}
	now, err := currentVersion(f.buffered)
	if err != nil {
		return &Error{Path: f.path, Err: err}
	}
	if now == f.first && !f.changed.Load() {
		return nil
	}
	f.changed.Store(true) // also where its time is set back
	return &ChangedError{Path: f.path, FoundBytes: now.bytes, WantBytes: f.first.bytes, Found: time.Unix(0, now.modified), Want: time.Unix(0, f.first.modified)}
}
