//go:build !linux && !darwin

package file

import "os"

func currentVersion(f *os.File) (version, error) {
	info, err := f.Stat()
	if err != nil {
		return version{}, err
	}
	return versionOf(info), nil
}
