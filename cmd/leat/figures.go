package main

import (
	"fmt"
	"math"
	"strconv"
)

// How figures are printed, each kind by one function: what is small must not look like nothing.

// digits prints x with so many digits that say something, and no exponent.
func digits(x float64, n int) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Sprintf("%g", x)
	}
	after := n - 1 - int(math.Floor(math.Log10(math.Abs(x))))
	text := strconv.FormatFloat(x, 'f', max(0, after), 64)
	if back, err := strconv.ParseFloat(text, 64); err == nil && after > 0 && math.Floor(math.Log10(math.Abs(back))) > math.Floor(math.Log10(math.Abs(x))) {
		return strconv.FormatFloat(x, 'f', after-1, 64) // it was rounded up to a digit more
	}
	return text
}

// formatSpeed prints tokens a second with three digits, for tables.
func formatSpeed(perSec float64) string { return digits(perSec, 3) }

// speedText is a speed in a sentence: of a slow model how long a token takes says more.
func speedText(perSec float64) string {
	if perSec > 0 && perSec < 0.995 {
		return seconds(1/perSec) + " a token"
	}
	return formatSpeed(perSec) + " tok/s"
}

// formatChange is how far something is from what it is compared with, a part of that: +3 %, 0 %, -12 %.
func formatChange(part float64) string {
	n := math.Round(100 * part)
	if n == 0 { // be it a little more or less
		return "0 %"
	}
	return fmt.Sprintf("%+.0f %%", n)
}

// percent is a part of a whole, for tables.
func percent(share float64) string {
	n := math.Round(100 * share)
	if share > 0 && n == 0 {
		return "<1%"
	}
	return fmt.Sprintf("%.0f%%", n)
}

// seconds is a time, in the unit in which it has few digits.
func seconds(s float64) string {
	switch {
	case s >= 2*3600:
		return digits(s/3600, 2) + " h"
	case s >= 120:
		return fmt.Sprintf("%.0f min", s/60)
	case s >= 9.95:
		return fmt.Sprintf("%.0f s", s)
	case s >= 0.9995:
		return fmt.Sprintf("%.1f s", s)
	case s >= 9.95e-3:
		return fmt.Sprintf("%.0f ms", 1e3*s)
	case s >= 99.5e-6:
		return fmt.Sprintf("%.1f ms", 1e3*s)
	case s > 0:
		return digits(1e6*s, 2) + " us"
	}
	return "0 ms"
}

// formatRate prints a bandwidth, whose units are powers of ten.
func formatRate(bytesPerSec float64) string {
	switch {
	case bytesPerSec >= 999.5e6:
		return fmt.Sprintf("%.2f GB/s", bytesPerSec/1e9)
	case bytesPerSec >= 9.95e6 || bytesPerSec == 0:
		return fmt.Sprintf("%.0f MB/s", bytesPerSec/1e6)
	}
	return digits(bytesPerSec/1e6, 2) + " MB/s"
}
