//go:build !linux

package bench

func residentBytes() int64 { return 0 }

func cachedBytes() int64 { return 0 }
