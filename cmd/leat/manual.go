//go:build docs

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"leat/internal/output"
)

// Only a build with the tag docs has this command, so that no other carries what turns
// help into manual pages: go run -tags docs ./cmd/leat docs DIR

func init() { commands = append(commands, newDocsCmd) }

func newDocsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "docs DIR",
		Short:  "Write manual pages and shell completions",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := writeManual(cmd.Root(), filepath.Join(args[0], "man", "man1")); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			if err := writeCompletions(cmd.Root(), filepath.Join(args[0], "completions")); err != nil {
				return fmt.Errorf("write completions: %w", err)
			}
			return nil
		},
	}
}

// The library prints every default, a switch's in brackets; these say nothing.
var (
	offSwitch = regexp.MustCompile(`(?m)^(\\fB-.*\\fP)\[=(?:false|)\]$`)
	noDefault = regexp.MustCompile(`(?m)^(\\fB-.*\\fP)=(?:0|0s|""|\[\]|)$`)
)

// writeManual makes a page of each command; $SOURCE_DATE_EPOCH, which the library reads,
// is their date.
func writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.InitDefaultCompletionCmd()
	return writePages(root, dir)
}

func writePages(c *cobra.Command, dir string) error {
	c.Long = manualText(c.Long)
	c.InitDefaultHelpFlag()
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "leat " + readVersion().Version, Manual: "leat"}
	var page bytes.Buffer
	if err := doc.GenMan(c, header, &page); err != nil {
		return err
	}
	text := offSwitch.ReplaceAll(page.Bytes(), []byte("$1"))
	text = noDefault.ReplaceAll(text, []byte("$1=VALUE"))
	if err := output.Write(filepath.Join(dir, name+".1"), text, output.Options{}); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := writePages(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manualText makes Markdown of a command's help: an indented line is a table's, and keeps
// its place.
func manualText(help string) string {
	var out strings.Builder
	table := false
	for line := range strings.Lines(help) {
		indented := strings.HasPrefix(line, "  ")
		if indented != table {
			out.WriteString("\n")
		}
		if table = indented; table {
			out.WriteString("  ") // four blanks: as it is
		}
		out.WriteString(line)
	}
	return out.String()
}

// writeCompletions makes a file for each shell, with the name under which it looks for it.
func writeCompletions(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	bash := func(w io.Writer) error { return root.GenBashCompletionV2(w, true) }
	fish := func(w io.Writer) error { return root.GenFishCompletion(w, true) }
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{"leat.bash", bash}, {"_leat", root.GenZshCompletion}, {"leat.fish", fish}, {"leat.ps1", root.GenPowerShellCompletionWithDesc}} {
		if err := output.Fill(filepath.Join(dir, f.name), output.Options{}, f.write); err != nil {
			return err
		}
	}
	return nil
}
