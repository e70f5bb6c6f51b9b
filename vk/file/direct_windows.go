package file

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

func openDirect(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, windows.GENERIC_READ, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_NO_BUFFERING, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}

// pread is one ReadFile: os.File.ReadAt would go on from the end of the file, where no
// block begins.
func pread(f *os.File, p []byte, off int64) (int, error) {
	var n uint32
	at := &windows.Overlapped{Offset: uint32(off), OffsetHigh: uint32(off >> 32)}
	err := windows.ReadFile(windows.Handle(f.Fd()), p, &n, at)
	if errors.Is(err, windows.ERROR_HANDLE_EOF) {
		err = nil
	}
	return int(n), err
}

func isRefusal(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_PARAMETER) || errors.Is(err, windows.ERROR_NOACCESS)
}

func forget(*os.File, int64, int64) {}
