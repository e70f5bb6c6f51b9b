package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"leat/cmd/leat/demo"
	"leat/decompose/pack"
	"leat/engine/token"
	"leat/internal/arch"
)

// wants demands the arguments of these names, and says which one is missing.
func wants(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch missing := len(names) - len(args); {
		case missing == 1:
			return &usageError{text: names[len(names)-1] + " is missing", hint: hintMissing(cmd, names[len(names)-1])}
		case missing > 1:
			return &usageError{text: strings.Join(names[len(args):], " and ") + " are missing", hint: hintMissing(cmd, names[len(args)])}
		case missing < 0:
			return usageErrorf("found %q after %s, wanted flags alone", args[len(names)], names[len(names)-1])
		}
		return nil
	}
}

// openModel opens what a MODEL argument means, and says where it lies.
func openModel(arg string) (m *pack.Model, path string, err error) {
	if path, err = modelPath(arg); err != nil {
		return nil, "", err
	}
	m, err = pack.Open(path)
	return m, path, err
}

// modelPath is the file or folder that a MODEL argument means; it exists. A folder that is
// really named demo is reached as ./demo.
func modelPath(arg string) (string, error) {
	if err := modelExists(arg); err != nil || arg != "demo" {
		return arg, err
	}
	path, err := demo.Path("")
	if err != nil {
		return "", fmt.Errorf("unpack the demo model: %w", err)
	}
	return path, nil
}

// modelExists fails where a MODEL argument means nothing. Commands ask it before anything else that may be missing.
func modelExists(arg string) error {
	if arg == "demo" {
		return nil
	}
	if _, err := os.Stat(arg); err != nil {
		return missingModel(arg, err)
	}
	return nil
}

// examine reads what a load would of an opened model, and tells what of it is not used.
func (a *app) examine(m *pack.Model) (*arch.Hyper, error) {
	h, err := arch.Read(m)
	if err != nil {
		return nil, err
	}
	tokenizer, err := token.New(m.Metadata)
	if err != nil && !token.Missing(err) {
		return nil, err
	}
	notes := h.Notes
	if err == nil { // without a tokenizer it runs on token ids
		notes = slices.Concat(notes, tokenizer.Notes())
	}
	for _, note := range notes {
		a.log.Warn(note, "model", m.Path)
	}
	return h, nil
}
