package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage turns what cobra says of a command line into a usage error with a hint.
func (a *app) usage(root, cmd *cobra.Command, args []string, err error) error {
	var told *usageError
	if errors.As(err, &told) {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	if _, rest, unknown := root.Find(args); unknown != nil && len(rest) > 0 {
		return &usageError{text: fmt.Sprintf("unknown command %q", rest[0]), hint: cmp.Or(hintCommand(root, rest), explains(cmd))}
	}
	if long := longShorthand(args); long != "" && strings.Contains(text, "flag") {
		return &usageError{text: fmt.Sprintf("unknown flag: -%s", long), hint: cmp.Or(hintFlag(cmd, long, args), explains(cmd))}
	}
	if flag, ok := unknownFlag(err); ok {
		return &usageError{text: text, hint: cmp.Or(hintFlag(cmd, flag, args), explains(cmd))}
	}
	if extra := cmd.Flags().Args(); tooMany.MatchString(text) && len(extra) > 0 {
		return &usageError{text: fmt.Sprintf("found %q, wanted flags alone", extra[len(extra)-1]), hint: explains(cmd)}
	}
	return &usageError{text: text, hint: explains(cmd)}
}

func explains(cmd *cobra.Command) string {
	return fmt.Sprintf("%q explains the usage", cmd.CommandPath()+" --help")
}

// Words that other programs have for what one of our commands does, or none.
var otherCommands = map[string]string{
	"chat": "run", "complete": "run", "generate": "run", "ask": "run", "prompt": "run", "talk": "run", "start": "run", "infer": "run", "cli": "run",
	"benchmark": "bench", "perf": "bench", "speed": "bench", "ppl": "perplexity", "logits": "eval", "tok": "tokenize", "encode": "tokenize",
	"convert": "decompose", "pack": "decompose", "split": "decompose", "create": "decompose", "check": "verify", "diagnose": "doctor", "tune": "doctor --tune",
	"info": "show", "inspect": "show", "metadata": "show", "template": "show --template", "fit": "plan", "estimate": "plan", "gpu": "devices", "gpus": "devices", "device": "devices", "ver": "version",
}

// Words for what leat does in no way.
var otherWays = map[string]string{
	"pull":  "leat loads no models from the network: fetch a GGUF file by other means, then \"leat run FILE.gguf\"",
	"list":  "leat keeps no list of models: each is a file, as in \"leat run FILE.gguf\"; \"leat devices\" lists the GPUs",
	"ps":    "nothing of leat runs in the background: a model is loaded as long as \"leat run\" runs",
	"serve": "leat has no server: \"leat run\" answers in the terminal, and examples/chatserver is a server in Go to start from",
}

func init() {
	for like, words := range map[string][]string{"pull": {"download", "get", "fetch", "install", "push", "login"}, "list": {"ls", "models", "rm", "remove", "cp"}, "ps": {"stop", "status", "kill", "load", "unload"}, "serve": {"server", "daemon", "api"}} {
		for _, word := range words {
			otherWays[word] = otherWays[like]
		}
	}
}

// hintCommand says what an unknown command may have meant: a model, another program's word, or a slip; "": nobody knows.
func hintCommand(root *cobra.Command, args []string) string {
	word := args[0]
	if ours := otherCommands[strings.ToLower(word)]; ours != "" {
		return fmt.Sprintf("did you mean %q?", strings.TrimSpace("leat "+ours+" "+argumentOf(root, ours)))
	}
	if way := otherWays[strings.ToLower(word)]; way != "" {
		return way
	}
	if isModelName(word) {
		return fmt.Sprintf("did you mean %q?", commandText([]string{"leat", "run", word}))
	}
	if near := root.SuggestionsFor(word); len(near) > 0 {
		return fmt.Sprintf("did you mean %q?", "leat "+near[0])
	}
	return ""
}

// isModelName reports whether a word in a command's place is a MODEL.
func isModelName(word string) bool {
	if word == "demo" || strings.EqualFold(filepath.Ext(word), ".gguf") {
		return true
	}
	_, err := os.Stat(word)
	return err == nil && strings.ContainsRune(word, filepath.Separator)
}

// argumentOf is a command's first argument, as its usage names it.
func argumentOf(root *cobra.Command, name string) string {
	cmd, _, err := root.Find(strings.Fields(name))
	if err != nil || len(argumentNames(cmd)) == 0 {
		return ""
	}
	return argumentNames(cmd)[0]
}

// argumentNames are the arguments that a command must have: MODEL, OUTDIR.
func argumentNames(cmd *cobra.Command) (names []string) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.ContainsAny(word[:1], "-[(") {
			break
		}
		names = append(names, word)
	}
	return names
}

// hintMissing says what an argument is, with an example.
func hintMissing(cmd *cobra.Command, name string) string {
	what := map[string]string{
		"MODEL": "a GGUF file, a pack, or the word demo", "IN.gguf": "a GGUF file", "PACK": "a folder that leat decompose made", "OUTDIR": "a folder that doesn't exist yet",
	}[name]
	example, _, _ := strings.Cut(cmd.Example, "\n")
	return fmt.Sprintf("give %s, as in: %s", cmp.Or(what, "it"), strings.TrimSpace(example))
}

// What cobra says of arguments that a command doesn't take.
var tooMany = regexp.MustCompile(`^accepts .*arg\(s\)|^unknown command "[^"]*" for "leat .*"$`)

// unknownFlag is the flag that pflag doesn't know, without dashes.
func unknownFlag(err error) (name string, ok bool) {
	var e *pflag.NotExistError
	if !errors.As(err, &e) {
		return "", false
	}
	return cmp.Or(e.GetSpecifiedShortnames(), e.GetSpecifiedName()), true
}

// longShorthand is a flag of another program with one dash and several letters, which reads as -n gl; "": there is none.
func longShorthand(args []string) string {
	for _, word := range args {
		if name, ok := strings.CutPrefix(word, "-"); ok && len(name) > 1 && otherFlags[name] != "" {
			return name
		}
	}
	return ""
}

// Flags of other programs, and ours in their place.
var otherFlags = map[string]string{
	"ngl": "vram", "n-gpu-layers": "vram", "gpu-layers": "vram", "gpu-memory": "vram", "c": "ctx", "ctx-size": "ctx", "context": "ctx", "context-length": "ctx", "n-ctx": "ctx", "num-ctx": "ctx",
	"n-predict": "tokens", "num-predict": "tokens", "max-tokens": "tokens", "max-new-tokens": "tokens", "temperature": "temp",
	"cache-type-k": "kv-type", "ctk": "kv-type", "system-prompt": "system", "sys": "system", "main-gpu": "device", "gpu": "device", "dev": "device",
	"batch-size": "chunk", "ubatch-size": "chunk", "ub": "chunk", "input-file": "file", "out": "logits", "output": "logits", "format": "json", "prompt-file": "file", "text": "prompt",
}

// hintFlag says what an unknown flag may have meant.
func hintFlag(cmd *cobra.Command, flag string, args []string) string {
	root := cmd.Root()
	switch {
	case flag == "version" || flag == "V":
		return "did you mean \"leat version\"?"
	case flag == "m" || flag == "model":
		model := "MODEL"
		for i, word := range args {
			name, value, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if name == flag && strings.HasPrefix(word, "-") {
				model = cmp.Or(value, strings.Join(args[i+1:min(i+2, len(args))], ""), model)
			}
		}
		name := "run"
		if cmd != root {
			name = cmd.Name()
		}
		return fmt.Sprintf("the model is named without a flag: %s", commandText([]string{"leat", name, model}))
	}
	if ours := otherFlags[flag]; ours != "" && cmd.Flags().Lookup(ours) != nil {
		return fmt.Sprintf("did you mean --%s? %s", ours, explains(cmd))
	}
	near := &cobra.Command{SuggestionsMinimumDistance: 2}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
			near.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	if len(flag) > 1 {
		if found := near.SuggestionsFor(flag); len(found) > 0 {
			return fmt.Sprintf("did you mean --%s? %s", found[0], explains(cmd))
		}
	}
	if cmd == root {
		for _, sub := range root.Commands() {
			if sub.Flags().Lookup(flag) != nil && sub.Name() == "run" {
				return fmt.Sprintf("it is a flag of a command, as in: leat run MODEL --%s", flag)
			}
		}
	}
	return ""
}
