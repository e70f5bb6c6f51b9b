package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A command with many flags shows in its help those that people use, and all of them with --help-advanced.
const advancedHelp = "help-advanced"

const advancedFlag = "leat_advanced" // the annotation of a flag that plain help leaves out

// hideAdvanced leaves the flags of those names out of a command's plain help, and adds --help-advanced, which shows them. The command
// has its other flags, its Args and its RunE by then.
func hideAdvanced(c *cobra.Command, names ...string) {
	fs := c.Flags()
	for _, name := range names {
		if err := fs.SetAnnotation(name, advancedFlag, nil); err != nil {
			panic(err) // the command has no such flag
		}
	}
	all := fs.Bool(advancedHelp, false, fmt.Sprintf("show the %d other flags too: samplers that few need, kernels, tests", len(names)))
	args, run := c.Args, c.RunE
	c.Args = func(cmd *cobra.Command, list []string) error {
		if *all {
			return nil
		}
		return args(cmd, list)
	}
	c.RunE = func(cmd *cobra.Command, list []string) error {
		if *all {
			return cmd.Help()
		}
		return run(cmd, list)
	}
}

func init() { cobra.AddTemplateFunc("flagUsages", flagUsages) }

// flagUsages lists flags for a command's help, 100 columns wide: the advanced ones only where --help-advanced is given.
func flagUsages(flags *pflag.FlagSet) string {
	if all := flags.Lookup(advancedHelp); all == nil || all.Value.String() != "true" {
		plain := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.VisitAll(func(f *pflag.Flag) {
			if !isAdvanced(f) {
				plain.AddFlag(f)
			}
		})
		flags = plain
	}
	// Blanks of the same width keep the columns.
	const noise = "[=true|false]"
	return strings.ReplaceAll(flags.FlagUsagesWrapped(100), noise, strings.Repeat(" ", len(noise)))
}

func isAdvanced(f *pflag.Flag) bool {
	_, ok := f.Annotations[advancedFlag]
	return ok
}
