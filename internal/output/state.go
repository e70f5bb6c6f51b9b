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

// UpdateState tries to get its folder's lock every lockPause, for lockWait at most.
const (
	lockPause = 5 * time.Millisecond
	lockWait  = 10 * time.Second // a write takes milliseconds: a process that holds the lock longer is suspended
	lockName  = ".lock"          // one file in each folder; nothing deletes it
)

// ReadState reads a state file. It returns nil without an error if there is none, and an error if it is no regular file or larger than
// limit bytes.
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

// UpdateState calls change with the content of a state file and replaces the content with the result. old is nil if the file is
// missing, unreadable, or larger than limit bytes. If change returns nil, UpdateState deletes the file; if it fails, the file stays.
// Meanwhile UpdateState holds the folder's lock, if it can get it. It does not sync: a crash of the system can damage the file,
// so callers check what they read.
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

// InPlace reports whether f.Name() still leads to the open file f. Call it once f is locked: before, another process may have removed
// or replaced the file.
func InPlace(f *os.File) bool {
	mine, err1 := f.Stat()
	there, err2 := os.Stat(f.Name())
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}

// lock locks the file at path against other processes; the system unlocks it if this process dies. If lock doesn't get it within
// lockWait it goes on without: at worst an update is lost, and something is measured again.
func lock(path string) (unlock func()) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return func() {}
	}
	for begin := time.Now(); time.Since(begin) < lockWait; time.Sleep(lockPause) {
		if locked, _ := TryLock(f); locked {
			return func() { f.Close() }
		}
	}
	f.Close()
	return func() {}
}
