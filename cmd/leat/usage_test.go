package main

import (
	"slices"
	"strings"
	"testing"
)

// A command line of another program, or with a slip, is pointed to ours.
func TestUsageHints(t *testing.T) {
	explained := func(name string) string { return `"leat ` + name + `--help" explains the usage` }
	for _, tt := range []struct {
		line, text, hint string
	}{
		{"--version", "unknown flag: --version", `did you mean "leat version"?`},
		{"run --version", "unknown flag: --version", `did you mean "leat version"?`},
		{"-V", "unknown shorthand flag: 'V' in -V", `did you mean "leat version"?`},
		{"--model x.gguf", "unknown flag: --model", "the model is named without a flag: leat run x.gguf"},
		{"--model=x.gguf -p hello", "unknown flag: --model", "the model is named without a flag: leat run x.gguf"},
		{"-m x.gguf", "unknown shorthand flag: 'm' in -m", "the model is named without a flag: leat run x.gguf"},
		{"run -m x.gguf", "unknown shorthand flag: 'm' in -m", "the model is named without a flag: leat run x.gguf"},
		{"bench -m", "unknown shorthand flag: 'm' in -m", "the model is named without a flag: leat bench MODEL"},
		{"run demo -ngl 99", "unknown flag: -ngl", "did you mean --vram? " + explained("run ")},
		{"run demo --n-gpu-layers 99", "unknown flag: --n-gpu-layers", "did you mean --vram? " + explained("run ")},
		{"run demo --ctx-size 99", "unknown flag: --ctx-size", "did you mean --ctx? " + explained("run ")},
		{"run demo --temperature 1", "unknown flag: --temperature", "did you mean --temp? " + explained("run ")},
		{"run demo --max-tokens 9", "unknown flag: --max-tokens", "did you mean --tokens? " + explained("run ")},
		{"run demo --promt x", "unknown flag: --promt", "did you mean --prompt? " + explained("run ")},
		{"run demo --frobnicate", "unknown flag: --frobnicate", explained("run ")},
		{"--vram 2GiB", "unknown flag: --vram", "it is a flag of a command, as in: leat run MODEL --vram"},
		{"chat", `unknown command "chat"`, `did you mean "leat run MODEL"?`},
		{"chat demo", `unknown command "chat"`, `did you mean "leat run MODEL"?`},
		{"Inspect x.gguf", `unknown command "Inspect"`, `did you mean "leat show MODEL"?`},
		{"pull llama3", `unknown command "pull"`, `leat loads no models from the network: fetch a GGUF file by other means, then "leat run FILE.gguf"`},
		{"ls", `unknown command "ls"`, `leat keeps no list of models: each is a file, as in "leat run FILE.gguf"; "leat devices" lists the GPUs`},
		{"ps", `unknown command "ps"`, `nothing of leat runs in the background: a model is loaded as long as "leat run" runs`},
		{"serve", `unknown command "serve"`, `leat has no server: "leat run" answers in the terminal, and examples/chatserver is a server in Go to start from`},
		{"models/x.gguf", `unknown command "models/x.gguf"`, `did you mean "leat run models/x.gguf"?`},
		{"demo", `unknown command "demo"`, `did you mean "leat run demo"?`},
		{"run", "MODEL is missing", "give a GGUF file, a pack, or the word demo, as in: leat run demo"},
		{"plan", "MODEL is missing", "give a GGUF file, a pack, or the word demo, as in: leat plan demo"},
		{"eval --tokens 1", "MODEL is missing", "give a GGUF file, a pack, or the word demo, as in: leat eval model.gguf --tokens 1,333,470 --logits out.f32"},
		{"verify", "PACK is missing", "give a folder that leat decompose made, as in: leat verify packs/llama-70b"},
		{"decompose", "IN.gguf and OUTDIR are missing", "give a GGUF file, as in: leat decompose llama-3.1-70b-q4_k_m.gguf packs/llama-70b"},
		{"decompose demo", "OUTDIR is missing", "give a folder that doesn't exist yet, as in: leat decompose llama-3.1-70b-q4_k_m.gguf packs/llama-70b"},
		{"run demo more", `found "more" after MODEL, wanted flags alone`, explained("run ")},
		{"bench demo more", `found "more", wanted flags alone`, explained("bench ")},
		{"decompose a b c", `found "c" after OUTDIR, wanted flags alone`, explained("decompose ")},
		{"devices all", `found "all", wanted flags alone`, explained("devices ")},
		{"plan demo --vram 0", `invalid argument "0" for "--vram" flag: wanted more than 0; without the flag leat takes what is free, less a reserve`, explained("plan ")},
		{"run demo --ram 0GiB", `invalid argument "0GiB" for "--ram" flag: wanted more than 0; without the flag leat takes what is free, less a reserve`, explained("run ")},
		{"bench --vram 2GiB,0", `invalid argument "2GiB,0" for "--vram" flag: wanted more than 0; without the flag leat takes what is free, less a reserve`, explained("bench ")},
	} {
		stdout, stderr, code := leat(t, strings.Fields(tt.line)...)
		want := "leat: error: " + tt.text + "\nleat: hint: " + tt.hint
		if code != exitUsage || stdout != "" || stderr != want+"\n" {
			t.Errorf("leat %s: exit %d, stdout %q, stderr:\n%swant exit 2 and:\n%s", tt.line, code, stdout, stderr, want)
		}
	}
}

// The words of other programs are none of ours, and what they point to is there.
func TestOtherWords(t *testing.T) {
	root := newRootCmd(&app{})
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	for word, ours := range otherCommands {
		if slices.Contains(names, word) || !slices.Contains(names, strings.Fields(ours)[0]) || otherWays[word] != "" {
			t.Errorf("%s points to %s", word, ours)
		}
	}
	for word := range otherWays {
		if slices.Contains(names, word) {
			t.Errorf("%s is a command", word)
		}
	}
	flags := map[string]bool{}
	for _, c := range root.Commands() {
		for _, f := range flagsOf(c) {
			flags[f.Name] = true
		}
	}
	for word, ours := range otherFlags {
		if !flags[ours] || word == ours {
			t.Errorf("--%s points to --%s", word, ours)
		}
	}
}

// Every command that wants an argument names it where it is missing.
func TestMissingArguments(t *testing.T) {
	for _, c := range newRootCmd(&app{}).Commands() {
		names := argumentNames(c)
		if c.Name() == "docs" {
			continue
		}
		for n := range names {
			_, stderr, code := leat(t, append([]string{c.Name()}, names[:n]...)...)
			if want := "leat: error: " + names[n]; code != exitUsage || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "missing\nleat: hint: give ") || !strings.Contains(stderr, "as in: leat "+c.Name()) {
				t.Errorf("leat %s %v: exit %d, %q", c.Name(), names[:n], code, stderr)
			}
		}
	}
}

// A model that is not there is said before a text that is missing.
func TestMissingModelFirst(t *testing.T) {
	for _, line := range []string{"run none.gguf", "run none.gguf -f none.txt", "perplexity none.gguf", "tokenize none.gguf", "eval none.gguf", "eval none.gguf --tokens x"} {
		if _, stderr, code := leat(t, strings.Fields(line)...); code != exitFailure || !strings.HasPrefix(stderr, "leat: error: find the model: stat none.gguf: no such file") {
			t.Errorf("leat %s: exit %d, %q", line, code, stderr)
		}
	}
}
