package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"leat/vk/mem"
)

// errNoSize: 0 is how a flag that was not given reads.
var errNoSize = errors.New("wanted more than 0; without the flag leat takes what is free, less a reserve")

// sizeFlag is a number of bytes on the command line; it is a pflag.Value.
type sizeFlag int64

func (s *sizeFlag) Set(text string) error {
	n, err := parseSize(text)
	if err != nil {
		return err
	}
	if n == 0 {
		return errNoSize
	}
	*s = sizeFlag(n)
	return nil
}

func (s *sizeFlag) String() string {
	if *s == 0 {
		return "" // pflag prints no default for it
	}
	return formatSize(int64(*s))
}

func (s *sizeFlag) Type() string { return "SIZE" }

// sizeUnits maps what may follow the number. A bare letter is a power of 1024, as people
// mean it when they speak of memory.
var sizeUnits = map[string]float64{
	"":  1,
	"b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

// parseSize reads 6.5GiB, 512MiB, 8GB, 2G or plain bytes.
func parseSize(text string) (int64, error) {
	bad := fmt.Errorf("size %q: want a number and a unit, as 6.5GiB, 512MiB or 8GB", text)
	number := strings.TrimRight(text, "kmgtibKMGTIB ")
	unit, ok := sizeUnits[strings.ToLower(strings.TrimSpace(text[len(number):]))]
	if !ok || number == "" || strings.Trim(number, "0123456789.") != "" {
		return 0, bad
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && unit == 1 {
		return n, nil // exact, where a float64 would round
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, bad
	}
	if f *= unit; f >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is larger than any memory", text)
	}
	return int64(f), nil
}

// formatSize prints memory for people: 412.0 MiB, 6.5 GiB.
func formatSize(n int64) string { return mem.FormatBytes(n) }
