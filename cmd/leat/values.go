package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The values of settings: each reads what its String makes.

type floatValue struct{ p *float64 }

func (v *floatValue) String() string { return strconv.FormatFloat(*v.p, 'g', -1, 64) }
func (v *floatValue) Type() string   { return "float" }
func (v *floatValue) Set(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("wanted a number")
	}
	*v.p = f
	return nil
}

type intValue struct {
	p     *int
	least int
}

func (v *intValue) String() string { return strconv.Itoa(*v.p) }
func (v *intValue) Type() string   { return "int" }
func (v *intValue) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || int(n) < v.least {
		return fmt.Errorf("wanted a whole number, %d or more", v.least)
	}
	*v.p = int(n)
	return nil
}

type seedValue struct{ p *uint64 }

func (v *seedValue) String() string { return strconv.FormatUint(*v.p, 10) }
func (v *seedValue) Type() string   { return "uint" }
func (v *seedValue) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("wanted a whole number, 0 or more")
	}
	*v.p = n
	return nil
}

type switchValue struct{ p *bool }

func (v *switchValue) String() string {
	if *v.p {
		return "on"
	}
	return "off"
}
func (v *switchValue) Type() string     { return "bool" }
func (v *switchValue) IsBoolFlag() bool { return true }
func (v *switchValue) Set(text string) error {
	switch strings.ToLower(text) {
	case "on", "true", "yes", "1":
		*v.p = true
	case "off", "false", "no", "0":
		*v.p = false
	default:
		return fmt.Errorf("wanted on or off")
	}
	return nil
}

// textsValue is a list; it takes one more text, or a whole list as JSON.
type textsValue struct{ p *[]string }

func (v *textsValue) Type() string   { return "TEXT" }
func (v *textsValue) String() string { return jsonOr("", len(*v.p), *v.p) }
func (v *textsValue) clear()         { *v.p = nil }
func (v *textsValue) Set(text string) error {
	var list []string
	switch {
	case text == "":
	case json.Unmarshal([]byte(text), &list) == nil:
		*v.p = list
	default:
		*v.p = append(*v.p, text)
	}
	return nil
}

// biasValue is a table of tokens; it takes more of them as ID=BIAS, with commas between.
// JSON has no -inf.
type biasValue struct{ p *map[int32]float32 }

func (v *biasValue) Type() string { return "ID=BIAS" }
func (v *biasValue) clear()       { *v.p = nil }
func (v *biasValue) String() string {
	var list []string
	for _, id := range slices.Sorted(maps.Keys(*v.p)) {
		list = append(list, fmt.Sprintf("%d=%s", id, strconv.FormatFloat(float64((*v.p)[id]), 'g', -1, 32)))
	}
	return strings.Join(list, ",")
}
func (v *biasValue) Set(text string) error {
	if text == "" {
		return nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		id, idErr := strconv.ParseInt(strings.TrimSpace(name), 10, 32)
		bias, err := strconv.ParseFloat(strings.TrimSpace(value), 32)
		if idErr != nil || err != nil {
			return fmt.Errorf("wanted ID=BIAS, a token's id and a number")
		}
		if *v.p == nil {
			*v.p = map[int32]float32{}
		}
		(*v.p)[int32(id)] = float32(bias)
	}
	return nil
}

// argsValue is a table of template arguments; it takes one more NAME=VALUE, where
// VALUE is JSON or else text, or a whole table as JSON.
type argsValue struct{ p *map[string]any }

func (v *argsValue) Type() string   { return "NAME=VALUE" }
func (v *argsValue) String() string { return jsonOr("", len(*v.p), *v.p) }
func (v *argsValue) clear()         { *v.p = nil }
func (v *argsValue) Set(text string) error {
	all := map[string]any{}
	if text == "" {
		return nil
	}
	if json.Unmarshal([]byte(text), &all) == nil {
		*v.p = all
		return nil
	}
	name, value, ok := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return fmt.Errorf("wanted NAME=VALUE")
	}
	if *v.p == nil {
		*v.p = map[string]any{}
	}
	var decoded any
	if json.Unmarshal([]byte(value), &decoded) != nil {
		decoded = value
	}
	(*v.p)[name] = decoded
	return nil
}

// jsonOr is v as JSON, or none where n is 0.
func jsonOr(none string, n int, v any) string {
	if n == 0 {
		return none
	}
	b, err := json.Marshal(v)
	if err != nil {
		return none // of strings and what JSON was read as: can't fail
	}
	return string(b)
}

// sizesFlag is a list of byte counts; it is a pflag.Value. Given again it begins anew.
type sizesFlag []int64

func (v *sizesFlag) Type() string { return "SIZES" }
func (v *sizesFlag) String() string {
	var list []string
	for _, n := range *v {
		list = append(list, formatSize(n))
	}
	return strings.Join(list, ",")
}
func (v *sizesFlag) Set(text string) error {
	var list []int64
	for word := range strings.SplitSeq(text, ",") {
		n, err := parseSize(strings.TrimSpace(word))
		if err == nil && n == 0 {
			err = errNoSize
		}
		if err != nil {
			return err
		}
		list = append(list, n)
	}
	*v = list
	return nil
}
