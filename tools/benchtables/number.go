package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number is a JSON number as the file writes it; "" if the file has none.
type number json.Number

func (n *number) UnmarshalJSON(data []byte) error {
	if _, err := strconv.ParseFloat(string(data), 64); err != nil {
		return fmt.Errorf("want a number, found %s", data)
	}
	*n = number(data)
	return nil
}

func (n number) value() float64 {
	v, _ := strconv.ParseFloat(string(n), 64)
	return v
}

// String rounds to three digits, or to an integer from 1000 on. It never adds digits.
func (n number) String() string {
	text := rounded(n.value())
	if !strings.ContainsAny(string(n), "eE") && digits(string(n)) < digits(text) {
		return string(n)
	}
	return text
}

// digits counts the digits of a decimal number from its first one that is not 0.
func digits(text string) int {
	return len(strings.NewReplacer(".", "", " ", "").Replace(strings.TrimLeft(text, "0.")))
}

// rounded has three digits, or all of the integer, in groups of three from 1000 on.
func rounded(v float64) string {
	if v <= 0 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(v))))
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	for i := len(text) - 3; i > 0 && decimals == 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// percent is a part of 1, in percent.
func percent(part float64) string { return fmt.Sprintf("%.0f %%", math.Round(100*part)) }

// change is a part of 1 by which something differs, in percent, with its sign.
func change(part float64) string {
	if p := math.Round(100 * part); p != 0 {
		return fmt.Sprintf("%+.0f %%", p)
	}
	return "0 %"
}

// size is a number of bytes in GiB or MiB, with at most one decimal.
func size(bytes int64) string {
	v, unit := float64(bytes)/(1<<30), " GiB"
	if v < 1 {
		v, unit = float64(bytes)/(1<<20), " MiB"
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + unit
}
