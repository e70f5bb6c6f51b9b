package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"leat/engine"
	"leat/engine/sample"
)

// settings are what can change from one answer to the next.
type settings struct {
	sample.Params
	Tokens       int
	Stop         []string
	IgnoreEOG    bool
	Stats        bool
	ShowThinking bool
	TemplateArgs map[string]any
}

func defaultSettings() settings {
	return settings{Params: sample.Params{Temperature: 0.8}, ShowThinking: true}
}

// setting is one row of the table: a flag of leat run, and a NAME of /set.
type setting struct {
	name, short string
	help        string
	value       func(*settings) pflag.Value
}

var settingTable = []setting{
	{"temp", "", "sampling temperature; 0 takes the most likely token", func(s *settings) pflag.Value { return &floatValue{&s.Temperature} }},
	{"seed", "", "seed of the sampling; 0 takes one from the clock", func(s *settings) pflag.Value { return &seedValue{&s.Seed} }},
	{"tokens", "n", "tokens to generate at most (default: until the model stops or the context is full)", func(s *settings) pflag.Value { return &intValue{&s.Tokens} }},
	{"stop", "", "text that ends the completion; may be given several times", func(s *settings) pflag.Value { return &textsValue{&s.Stop} }},
	{"ignore-eog", "", "go on past the model's own stop", func(s *settings) pflag.Value { return &switchValue{&s.IgnoreEOG} }},
	{"stats", "", "print speeds and memory to stderr after the answer", func(s *settings) pflag.Value { return &switchValue{&s.Stats} }},
	{"thinking", "", "show what the model thinks before it answers, dimmed; on stderr where the prompt isn't typed", func(s *settings) pflag.Value { return &switchValue{&s.ShowThinking} }},
	{"template-arg", "", "argument of the chat template, as enable_thinking=false; may be given several times", func(s *settings) pflag.Value { return &argsValue{&s.TemplateArgs} }},
}

// registerSettings makes a flag of each row.
func registerSettings(fs *pflag.FlagSet, s *settings) {
	for _, row := range settingTable {
		f := fs.VarPF(row.value(s), row.name, row.short, row.help)
		if f.Value.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
		if slices.Contains([]string{"0", "off", ""}, f.DefValue) {
			f.DefValue = "" // as the help of the row says it
		}
	}
}

func findSetting(name string) (*setting, error) {
	var names []string
	for i := range settingTable {
		if settingTable[i].name == name {
			return &settingTable[i], nil
		}
		names = append(names, settingTable[i].name)
	}
	return nil, &usageError{text: fmt.Sprintf("there is no setting %q", name), hint: "there are " + strings.Join(names, ", ")}
}

// change sets one setting from text, or leaves all as it was.
func (s *settings) change(name, text string) error {
	row, err := findSetting(name)
	if err != nil {
		return err
	}
	next := s.clone()
	v := row.value(&next)
	if l, ok := v.(interface{ clear() }); ok {
		l.clear() // a flag adds, /set replaces
	}
	if err := v.Set(text); err != nil {
		return &usageError{text: fmt.Sprintf("%s: found %q: %v", name, text, err), hint: row.help}
	}
	if err := next.Validate(); err != nil {
		return &usageError{text: err.Error(), hint: row.help}
	}
	*s = next
	return nil
}

// reset gives one setting the value it has in from.
func (s *settings) reset(name string, from *settings) error {
	row, err := findSetting(name)
	if err != nil {
		return err
	}
	return s.change(name, row.value(from).String())
}

func (s *settings) clone() settings {
	next := *s
	next.Stop = slices.Clone(s.Stop)
	next.TemplateArgs = maps.Clone(s.TemplateArgs)
	return next
}

// values lists all settings as text, which change takes back.
func (s *settings) values() map[string]string {
	all := make(map[string]string, len(settingTable))
	for _, row := range settingTable {
		all[row.name] = row.value(s).String()
	}
	return all
}

// changeAll sets what values lists, or nothing.
func (s *settings) changeAll(values map[string]string) error {
	next := s.clone()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := next.change(name, values[name]); err != nil {
			return err
		}
	}
	*s = next
	return nil
}

// params are the engine's parameters of one answer; attempt counts its retries, which
// a fixed seed must not make all alike.
func (s *settings) params(now uint64, attempt int) engine.Params {
	p := engine.Params{Params: s.Params, MaxTokens: s.Tokens, Stop: s.Stop, IgnoreEOG: s.IgnoreEOG}
	if p.Seed == 0 {
		p.Seed = now
	} else {
		p.Seed += uint64(attempt)
	}
	return p
}

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

type intValue struct{ p *int }

func (v *intValue) String() string { return strconv.Itoa(*v.p) }
func (v *intValue) Type() string   { return "int" }
func (v *intValue) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return fmt.Errorf("wanted a whole number, 0 or more")
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
