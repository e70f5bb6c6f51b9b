package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestSettingsChange(t *testing.T) {
	for _, c := range []struct{ name, setting, text, want, fails string }{
		{"number", "temp", "0.5", "0.5", ""},
		{"no number", "temp", "warm", "", "wanted a number"},
		{"out of range", "temp", "-1", "", "0 or more"},
		{"not a number", "temp", "NaN", "", "0 or more"},
		{"count", "tokens", "12", "12", ""},
		{"negative count", "tokens", "-1", "", "0 or more"},
		{"huge count", "tokens", "99999999999999999999", "", "whole number"},
		{"seed", "seed", "18446744073709551615", "18446744073709551615", ""},
		{"switch", "stats", "on", "on", ""},
		{"switch of a flag", "stats", "true", "on", ""},
		{"no switch", "stats", "perhaps", "", "on or off"},
		{"one text", "stop", "END", `["END"]`, ""},
		{"list of texts", "stop", `["\n","END"]`, `["\n","END"]`, ""},
		{"template argument", "template-arg", "enable_thinking=false", `{"enable_thinking":false}`, ""},
		{"template argument of text", "template-arg", "effort=high", `{"effort":"high"}`, ""},
		{"template arguments", "template-arg", `{"a":1,"b":[2]}`, `{"a":1,"b":[2]}`, ""},
		{"template argument without value", "template-arg", "enable_thinking", "", "NAME=VALUE"},
		{"look back on all", "repeat-last-n", "-1", "-1", ""},
		{"top-p", "top-p", "1.5", "", "0 to 1"},
		{"biases", "logit-bias", "42=-inf, 13=-1.5", "13=-1.5,42=-Inf", ""},
		{"bias of no token", "logit-bias", "dog=1", "", "ID=BIAS"},
		{"bias without value", "logit-bias", "13", "", "ID=BIAS"},
		{"bias up to infinity", "logit-bias", "13=+inf", "", "-Inf to ban"},
		{"unknown", "heat", "1", "", "no setting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := defaultSettings()
			s.Stop = []string{"old"}
			before := s.values()
			err := s.change(c.setting, c.text)
			if c.fails != "" {
				var usage *usageError
				if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.fails) || usage.Hint() == "" {
					t.Errorf("got error %v, wanted one with %q and a hint", err, c.fails)
				}
				if !maps.Equal(before, s.values()) {
					t.Errorf("a failed change left %v", s.values())
				}
				return
			}
			if got := s.values()[c.setting]; err != nil || got != c.want {
				t.Errorf("got %q, error %v; wanted %q", got, err, c.want)
			}
		})
	}
}

// Every value that is shown can be given back: /save and /load live on it.
func TestSettingsRoundTrip(t *testing.T) {
	s := defaultSettings()
	for name, text := range map[string]string{"temp": "0.25", "seed": "7", "tokens": "9", "stop": `["a b","\n"]`, "stats": "on", "thinking": "off", "logit-bias": "13=-inf,42=1", "top-k": "40", "repeat-last-n": "-1", "ignore-eog": "on", "template-arg": `{"x":null}`} {
		if err := s.change(name, text); err != nil {
			t.Fatal(err)
		}
	}
	other := defaultSettings()
	if err := other.changeAll(s.values()); err != nil || !maps.Equal(s.values(), other.values()) {
		t.Errorf("got %v, error %v; wanted %v", other.values(), err, s.values())
	}
	start := defaultSettings()
	for name := range s.values() {
		if err := s.reset(name, &start); err != nil {
			t.Errorf("reset %s: %v", name, err)
		}
	}
	if !maps.Equal(s.values(), start.values()) {
		t.Errorf("after resetting all: %v", s.values())
	}
}

func TestSettingsAsFlags(t *testing.T) {
	s := defaultSettings()
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	registerSettings(fs, &s)
	args := []string{"--temp", "0", "-n", "5", "--stats", "--thinking=off", "--stop", "a", "--stop", "b", "--template-arg", "x=1", "--template-arg", "y=z"}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if s.Temperature != 0 || s.Tokens != 5 || !s.Stats || s.ShowThinking || !slices.Equal(s.Stop, []string{"a", "b"}) || len(s.TemplateArgs) != 2 {
		t.Errorf("got %+v", s)
	}
}

func TestSeed(t *testing.T) {
	s := defaultSettings()
	if a, b := s.seed(0), s.seed(0); a == 0 || a == b {
		t.Errorf("none set: got %d and %d", a, b)
	}
	s.Seed = 7
	if a, b := s.seed(0), s.seed(1); a != 7 || b == a {
		t.Errorf("seed 7: got %d, and %d for a retry", a, b)
	}
}
