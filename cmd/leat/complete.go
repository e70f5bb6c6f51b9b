package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"leat/decompose/pack"
	"leat/engine"
	"leat/internal/predict/gpus"
	"leat/vk"
)

// addCompletion tells the shells what cobra can't know: which words name a model or a
// device. A command says in its Use what its argument is.
func addCompletion(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cobra.NoFileCompletions
			for _, word := range strings.Fields(c.Use)[1:] {
				if complete := argumentCompletion[strings.Trim(word, "[]")]; complete != nil {
					c.ValidArgsFunction = complete
					break
				}
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			complete := flagCompletion[f.Name]
			if complete == nil && !slices.Contains(fileFlags, f.Name) {
				complete = cobra.NoFileCompletions // a number or a text: no file is one
			}
			if complete != nil {
				_ = c.RegisterFlagCompletionFunc(f.Name, complete) // fails only where the command has done so itself
			}
		})
	}
}

var argumentCompletion = map[string]cobra.CompletionFunc{
	"MODEL":   first(func(word string) []string { return completeModel(word, true, true) }),
	"IN.gguf": first(func(word string) []string { return completeModel(word, true, false) }),
	"PACK":    first(func(word string) []string { return completeModel(word, false, true) }),
}

// fileFlags are those whose values the shell completes: names of files and folders.
var fileFlags = []string{"file", "system-file", "disk", "stripe", "logits", "trace-experts", "svg", "timeline", "trace", "experts", "cpuprofile"}

var flagCompletion = map[string]cobra.CompletionFunc{
	"device":  completeDevice,
	"kv-type": cobra.FixedCompletions(engine.KVTypes(), cobra.ShellCompDirectiveNoFileComp),
	"disable": cobra.FixedCompletions(vk.Disabled(), cobra.ShellCompDirectiveNoFileComp),
	"enable":  cobra.FixedCompletions(vk.Enabled(), cobra.ShellCompDirectiveNoFileComp),
	"pace":    cobra.FixedCompletions([]string{"auto\trest where the GPU gets too hot", "off\tnever rest"}, cobra.ShellCompDirectiveNoFileComp),
	"gpu": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return completeGPU(), cobra.ShellCompDirectiveNoFileComp
	},
	"pooling":      cobra.FixedCompletions([]string{"mean", "cls", "last", "none"}, cobra.ShellCompDirectiveNoFileComp),
	"expert-cache": cobra.FixedCompletions(engine.ExpertPolicies(), cobra.ShellCompDirectiveNoFileComp),
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

// completeGPU offers the GPUs that are known by their data sheets.
func completeGPU() []string {
	words := []string{"list\tthe names of those known"}
	for _, g := range gpus.All() {
		words = append(words, fmt.Sprintf("%s\t%s", g.Name, formatSize(g.VRAMBytes)))
	}
	return words
}

// completeModel lists the GGUF files, the packs and the folders that word can become.
func completeModel(word string, ggufs, packs bool) []string {
	var words []string
	if ggufs && strings.HasPrefix("demo", word) {
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
		case info.IsDir() && isPack(path):
			if packs {
				words = append(words, dir+name)
			}
		case info.Mode().IsRegular() && strings.EqualFold(filepath.Ext(name), ".gguf"):
			if ggufs {
				words = append(words, dir+name)
			}
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
