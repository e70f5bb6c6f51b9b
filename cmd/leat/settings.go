package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"leat/engine"
	"leat/engine/sample"
)

// settings are what can change from one answer to the next.
type settings struct {
	sample.Params
	Breakers     []string // texts; DRYBreakers are a model's tokens
	Tokens       int
	Stop         []string
	IgnoreEOG    bool
	Stats        bool
	ShowThinking bool
	TemplateArgs map[string]any
}

func defaultSettings() settings {
	return settings{Params: sample.Params{Temperature: 0.8, MinP: 0.05}, ShowThinking: true}
}

// setting is one row of the table: a flag of leat run, and a NAME of /set.
type setting struct {
	name, short string
	zero        string // what 0 or nothing amounts to, where that isn't plain
	help        string
	value       func(*settings) pflag.Value
}

var settingTable = []setting{
	{"temp", "", "always the most likely token", "sampling temperature; 0 takes the most likely token", float(func(s *settings) *float64 { return &s.Temperature })},
	{"top-k", "", "all", "sample from so many of the likeliest tokens; 0: all", count(func(s *settings) *int { return &s.TopK }, 0)},
	{"top-p", "", "all", "sample from the likeliest tokens that have this probability together; 0: all", float(func(s *settings) *float64 { return &s.TopP })},
	{"min-p", "", "all", "sample from tokens with at least this share of the likeliest one's probability; 0: all", float(func(s *settings) *float64 { return &s.MinP })},
	{"typical-p", "", "all", "as top-p, but the tokens nearest to the expected surprise; 0: all", float(func(s *settings) *float64 { return &s.TypicalP })},
	{"repeat-penalty", "", "off", "makes seen tokens less likely, as 1.1; 0 or 1: off", float(func(s *settings) *float64 { return &s.RepeatPenalty })},
	{"frequency-penalty", "", "off", "makes tokens less likely each time they are seen; 0: off", float(func(s *settings) *float64 { return &s.FrequencyPenalty })},
	{"presence-penalty", "", "off", "makes seen tokens less likely, once; 0: off", float(func(s *settings) *float64 { return &s.PresencePenalty })},
	{"repeat-last-n", "", "64", "tokens that these penalties look back on; 0: 64, -1: all", count(func(s *settings) *int { return &s.PenaltyLastN }, -1)},
	{"dry-multiplier", "", "off", "makes it less likely that a passage repeats, as 0.8; 0: off", float(func(s *settings) *float64 { return &s.DRYMultiplier })},
	{"dry-base", "", "1.75", "growth of that penalty with the repeat's length; 0: 1.75", float(func(s *settings) *float64 { return &s.DRYBase })},
	{"dry-allowed-length", "", "2", "tokens of a repeat that are free of it; 0: 2", count(func(s *settings) *int { return &s.DRYAllowedLength }, 0)},
	{"dry-penalty-last-n", "", "all", "tokens it looks back on; 0 or -1: all", count(func(s *settings) *int { return &s.DRYLastN }, -1)},
	{"dry-sequence-breaker", "", "the usual ones: newline, colon, double quote, asterisk", "text that no repeat reaches across, for all the usual ones; may be given several times", func(s *settings) pflag.Value { return &textsValue{&s.Breakers} }},
	{"xtc-probability", "", "never", "how often the likeliest of several good tokens are left out; 0: never", float(func(s *settings) *float64 { return &s.XTCProbability })},
	{"xtc-threshold", "", "0.1", "probability that makes a token a good one for that; 0: 0.1", float(func(s *settings) *float64 { return &s.XTCThreshold })},
	{"logit-bias", "", "", "added to a token's logit, as 13=-1.5; -inf bans it; may be given several times", func(s *settings) pflag.Value { return &biasValue{&s.LogitBias} }},
	{"seed", "", "drawn for each answer", "seed of the sampling; 0 draws one", func(s *settings) pflag.Value { return &seedValue{&s.Seed} }},
	{"tokens", "n", "until the model stops or the context is full", "tokens to generate at most; 0: until the model stops or the context is full", count(func(s *settings) *int { return &s.Tokens }, 0)},
	{"stop", "", "", "text that ends the completion; may be given several times", func(s *settings) pflag.Value { return &textsValue{&s.Stop} }},
	{"ignore-eog", "", "", "go on past the model's own stop", onOff(func(s *settings) *bool { return &s.IgnoreEOG })},
	{"stats", "", "", "print speeds and memory to stderr after the answer", onOff(func(s *settings) *bool { return &s.Stats })},
	{"thinking", "", "", "show what the model thinks before it answers; to stderr where stdout is no terminal", onOff(func(s *settings) *bool { return &s.ShowThinking })},
	{"template-arg", "", "", "argument of the chat template, as enable_thinking=false; may be given several times", func(s *settings) pflag.Value { return &argsValue{&s.TemplateArgs} }},
}

func float(of func(*settings) *float64) func(*settings) pflag.Value {
	return func(s *settings) pflag.Value { return &floatValue{of(s)} }
}

func count(of func(*settings) *int, least int) func(*settings) pflag.Value {
	return func(s *settings) pflag.Value { return &intValue{of(s), least} }
}

func onOff(of func(*settings) *bool) func(*settings) pflag.Value {
	return func(s *settings) pflag.Value { return &switchValue{of(s)} }
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
	next.Breakers = slices.Clone(s.Breakers)
	next.LogitBias = maps.Clone(s.LogitBias)
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
func (s *settings) params(m *engine.Model, attempt int) engine.Params {
	p := engine.Params{Params: s.Params, MaxTokens: s.Tokens, Stop: s.Stop, IgnoreEOG: s.IgnoreEOG}
	p.Seed = s.seed(attempt)
	if len(s.Breakers) > 0 {
		p.DRYBreakers = m.Breakers(s.Breakers...)
	}
	return p
}

// seed draws one where none is set, so that the answer can name it.
func (s *settings) seed(attempt int) uint64 {
	if s.Seed == 0 {
		return sample.NewSeed()
	}
	return s.Seed + uint64(attempt)
}
