package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A file of the program's own state, such as measurements, is changed under a lock.
const (
	lockPause = 5 * time.Millisecond
	lockWait  = 10 * time.Second // writing takes milliseconds: a process that holds the lock longer was stopped
	lockName  = ".lock"          // one for each folder; it stays
)

// ReadState reads a file of the program's own: a regular one of at most limit bytes. Nothing is there: nil.
func ReadState(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: a pipe would wait
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %s: found no regular file", path)
	case info.Size() > limit:
		return nil, fmt.Errorf("read %s: found %d bytes, wanted at most %d", path, info.Size(), limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("read %s: found more than %d bytes", path, limit)
	}
	return data, err
}

// UpdateState replaces a file of the program's own by what change makes of it; old is nil where nothing readable of at
// most limit bytes is there. No other process updates it meanwhile. Where change returns nil the file goes. A crash of the
// system may lose the file, as nothing waits for the disk: what is read is checked, and made again.
func UpdateState(path string, limit int64, change func(old []byte) ([]byte, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	defer lock(filepath.Join(filepath.Dir(path), lockName))()
	old, err := ReadState(path, limit)
	if err != nil {
		old = nil
	}
	data, err := change(old)
	if err != nil {
		return err
	}
	if data == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if int64(len(data)) > limit {
		return fmt.Errorf("write %s: %d bytes, wanted at most %d", path, len(data), limit)
	}
	f, err := Create(path, Options{Perm: 0o644})
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.commit(false)
}

// InPlace reports whether the file that f has open is still the one under its name: another process may have removed or replaced it
// before f was locked.
func InPlace(f *os.File) bool {
	mine, err1 := f.Stat()
	there, err2 := os.Stat(f.Name())
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}

// lock keeps other processes out; the system gives it back when a process dies. Where that fails it goes without: the
// worst is a measurement made again.
func lock(path string) (unlock func()) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return func() {}
	}
	for begin := time.Now(); time.Since(begin) < lockWait; time.Sleep(lockPause) {
		if locked, _ := TryLock(f); locked {
			return func() { f.Close() } // gives the lock back
		}
	}
	f.Close()
	return func() {}
}
