package main

import (
	"math"
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	tests := map[string]int64{
		"0":                   0,
		"1000000":             1000000,
		"9223372036854775807": math.MaxInt64,
		"512MiB":              512 << 20,
		"512mib":              512 << 20,
		"512 MiB":             512 << 20,
		"2GiB":                2 << 30,
		"6.5GiB":              6.5 * (1 << 30),
		"8GB":                 8e9,
		"2G":                  2 << 30,
		"64k":                 64 << 10,
		"1.5T":                1.5 * (1 << 40),
		"100B":                100,
	}
	for text, want := range tests {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "-1GiB", "1XB", "1.2.3GiB", "1e9", "0x10", "inf", "NaN", "2GiBGiB", "9223372036854775808", "99999999TiB", "1 2", "2 G i B"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestSizeFlag(t *testing.T) {
	var s sizeFlag
	if s.String() != "" || s.Type() != "SIZE" {
		t.Errorf("zero prints %q, type %q", s.String(), s.Type())
	}
	if err := s.Set("6.5GiB"); err != nil || s.String() != "6.5 GiB" {
		t.Errorf("6.5GiB prints %q, %v", s.String(), err)
	}
	if err := s.Set("x"); err == nil || s != 6.5*(1<<30) {
		t.Errorf("a bad size changed the flag to %d, %v", s, err)
	}
}

func TestFormat(t *testing.T) {
	sizes := map[int64]string{
		0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 412 << 20: "412.0 MiB",
		80 << 30: "80.0 GiB", 3 << 40: "3072.0 GiB",
	}
	for n, want := range sizes {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d) = %q, want %q", n, got, want)
		}
		if back, err := parseSize(strings.ReplaceAll(want, " ", "")); err != nil || back != n {
			t.Errorf("%q reads back as %d, %v", want, back, err)
		}
	}
	for rate, want := range map[float64]string{49.3e9: "49.30 GB/s", 620e6: "620 MB/s"} {
		if got := formatRate(rate); got != want {
			t.Errorf("formatRate(%g) = %q, want %q", rate, got, want)
		}
	}
}
