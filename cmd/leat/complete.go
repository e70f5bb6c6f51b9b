package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"leat/decompose/pack"
	"leat/engine"
	"leat/vk"
)

// addCompletion tells the shells what cobra can't know: which words name a model or a
// device. A command's first argument says in its Use what it is.
func addCompletion(root *cobra.Command) {
	for _, c := range root.Commands() {
		_, rest, _ := strings.Cut(c.Use, " ")
		argument, _, _ := strings.Cut(rest, " ")
		if complete := argumentCompletion[strings.Trim(argument, "[]")]; complete != nil && c.ValidArgsFunction == nil {
			c.ValidArgsFunction = complete
		}
		for name, complete := range flagCompletion {
			if c.Flags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, complete) // fails only where the command has done so itself
			}
		}
	}
}

var argumentCompletion = map[string]cobra.CompletionFunc{
	"MODEL":   first(completeModel),
	"IN.gguf": first(completeModel),
	"PACK":    first(completeModel),
}

var flagCompletion = map[string]cobra.CompletionFunc{
	"device":  completeDevice,
	"kv-type": cobra.FixedCompletions(engine.KVTypes(), cobra.ShellCompDirectiveNoFileComp),
	"disable": cobra.FixedCompletions(vk.Disabled(), cobra.ShellCompDirectiveNoFileComp),
	"enable":  cobra.FixedCompletions(vk.Enabled(), cobra.ShellCompDirectiveNoFileComp),
	"prompt":  cobra.NoFileCompletions,
	"system":  cobra.NoFileCompletions,
	"vram":    cobra.NoFileCompletions,
	"ram":     cobra.NoFileCompletions,
	"ctx":     cobra.NoFileCompletions,
	"tier": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return completeTier(), cobra.ShellCompDirectiveNoFileComp
	},
}

// first completes the first argument only; of a further one the shell knows as much as we.
func first(complete func(word string) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		words := complete(word)
		for _, w := range words {
			if !os.IsPathSeparator(w[len(w)-1]) {
				return words, cobra.ShellCompDirectiveNoFileComp
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeModel lists the GGUF files, the packs and the folders that word can become.
func completeModel(word string) []string {
	var words []string
	if strings.HasPrefix("demo", word) {
		words = append(words, "demo\tthe model inside this program")
	}
	dir, base := filepath.Split(word)
	read := expandHome(dir)
	if read == "" {
		read = "."
	}
	entries, _ := os.ReadDir(read) // no folder: nothing to offer
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || base == "" && name[0] == '.' {
			continue
		}
		path := filepath.Join(read, name)
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.IsDir() && isPack(path), !info.IsDir() && strings.EqualFold(filepath.Ext(name), ".gguf"):
			words = append(words, dir+name)
		case info.IsDir():
			words = append(words, dir+name+string(filepath.Separator))
		}
	}
	return words
}

func isPack(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, pack.ManifestName))
	return err == nil
}

// completeDevice offers the devices' numbers, and their names beside them.
func completeDevice(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	instance, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		return cobra.AppendActiveHelp(nil, err.Error()), cobra.ShellCompDirectiveNoFileComp
	}
	defer instance.Close()
	var words []string
	for _, p := range instance.PhysicalDevices() {
		words = append(words, fmt.Sprintf("%d\t%s", p.Index, p.Name))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
