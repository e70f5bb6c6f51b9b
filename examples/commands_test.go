package examples

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"leat/vk/vktest"
)

const demo = "cmd/leat/demo/leat-demo-q4_k_m.gguf"

// unrun are the commands that the demo can't run here, with why; a row that ends in * is of all that begin so.
// What they call of leat is checked all the same.
var unrun = map[string]string{
	"./build.sh demo":                    "it may install packages; its two commands are run",
	"./build.sh build":                   "it may install packages",
	"./build.sh release":                 "it builds for six systems, for minutes",
	"leat bench [MODEL]":                 "it measures the machine first, on a CPU for a minute; cmd/leat's bench.txtar runs it",
	"leat plan MODEL":                    "it measures the machine first, on a CPU for a minute; cmd/leat's plan.txtar runs it",
	"leat doctor":                        "it tests kernels, on a CPU for a minute; cmd/leat's TestDoctor runs it",
	"leat doctor --retry":                "it tests kernels, on a CPU for a minute; cmd/leat's TestDoctorCrashes runs it",
	"leat run --resume":                  "only a talk at a terminal is kept; cmd/leat's tests resume one at a terminal of their own",
	"leat decompose --force":             "named without its model",
	"leat verify":                        "named without its pack",
	"leat plan":                          "named without its model",
	"leat completion powershell *":       "PowerShell",
	"go mod tidy":                        "TestEmbedding builds that module with a go.sum",
	"go run . model.gguf":                "TestEmbedding runs that program",
	"cd examples && go run ./generate *": "the test of examples/generate runs that program",
	"podman run *":                       "a container engine",
	"apt-get install *":                  "root",
	"ubuntu-drivers install":             "root, and an NVIDIA GPU",
	"sudo usermod *":                     "root",
	"dnf install *":                      "another system",
	"pacman -S *":                        "another system",
	"brew install *":                     "another system",
	"git lfs pull":                       "git-lfs, and a repository that uses it",
}

// Every command that a page shows is known to the program, with its flags, and does what the page says.
func TestCommands(t *testing.T) {
	folder := newWorkFolder(t)
	var all []command
	var outputs []string
	for _, page := range pages {
		commands, said := commandsIn(page, read(t, page))
		all = append(all, commands...)
		if page != "docs/embedding.md" { // it shows what its program says, see TestEmbedding
			outputs = append(outputs, said...)
		}
	}
	t.Run("flags", func(t *testing.T) {
		for _, c := range all {
			folder.known(t, c)
		}
		for _, page := range pages {
			folder.flagsKnown(t, page, read(t, page))
		}
	})
	t.Run("list", func(t *testing.T) { listed(t, all) })
	t.Run("run", func(t *testing.T) {
		device := vktest.Open(t).Physical.Name // skips where there is none
		all = append(all, demoCommands(t)...)
		folder.runAll(t, device, all, outputs)
	})
}

func why(line string) (row, reason string) {
	for row, reason := range unrun {
		prefix, all := strings.CutSuffix(row, "*")
		if line == row || all && strings.HasPrefix(line, prefix) {
			return row, reason
		}
	}
	return "", ""
}

func listed(t *testing.T, all []command) {
	used := map[string]bool{}
	for _, c := range all {
		row, _ := why(c.line)
		used[row] = true
	}
	for row := range unrun {
		if !used[row] {
			t.Errorf("no page shows %q: take it off the list", row)
		}
	}
	if len(all) < 40 {
		t.Errorf("found %d commands, want 40 or more", len(all))
	}
}

// demoCommands are those of "./build.sh demo", in the words of the folder that they are run in here.
func demoCommands(t *testing.T) (commands []command) {
	for _, m := range regexp.MustCompile(`(?m)^  run bin/(leat .*)$`).FindAllStringSubmatch(read(t, "build.sh"), -1) {
		line := strings.NewReplacer(`"$model"`, "model.gguf", `"$demo_dir/pack"`, "demo-pack").Replace(m[1])
		commands = append(commands, command{page: "build.sh", line: line})
	}
	if len(commands) != 2 {
		t.Errorf("build.sh: found %d commands of its demo, want 2", len(commands))
	}
	return commands
}

// workFolder is a folder in which the pages' commands run: with the program, and a model by each name that pages give one.
type workFolder struct {
	dir, leat string
	env       []string
	help      map[string]string // of each command
}

func newWorkFolder(t *testing.T) *workFolder {
	b := &workFolder{dir: t.TempDir(), help: map[string]string{}}
	b.leat = filepath.Join(b.dir, "bin", "leat")
	if out, err := exec.Command("go", "-C", "..", "build", "-o", b.leat, "./cmd/leat").CombinedOutput(); err != nil {
		t.Fatalf("build cmd/leat: %v\n%s", err, out)
	}
	home := filepath.Join(b.dir, "home")
	for _, dir := range []string{"tools", "home/.config/fish/completions"} {
		if err := os.MkdirAll(filepath.Join(b.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"model.gguf", "MODEL", "MODEL.gguf", "IN.gguf"} {
		if err := os.Link(model(t), filepath.Join(b.dir, name)); err != nil {
			data, err := os.ReadFile(model(t))
			if err != nil {
				t.Fatal(err)
			}
			b.write(t, name, string(data))
		}
	}
	b.write(t, "TEXT", strings.Repeat("Once upon a time, there was a little girl named Lily. She loved to play outside. ", 3))
	// Answers are short, but for those of 40 tokens that pages show.
	b.write(t, "tools/leat", "#!/bin/sh\ncase \"$* \" in *' -n 40 '*|*' --help '*) ;; 'run '*) set -- \"$@\" -n 4 ;; 'perplexity '*) set -- \"$@\" --limit 1 --window 16 ;; esac\nexec '"+b.leat+"' \"$@\"\n")
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "LEAT_") && name != "HOME" && name != "PATH" {
			b.env = append(b.env, v)
		}
	}
	if dir, err := os.UserCacheDir(); err == nil { // or Mesa would compile each shader again
		b.env = append(b.env, "MESA_SHADER_CACHE_DIR="+dir)
	}
	b.env = append(b.env, "HOME="+home, "PATH="+filepath.Join(b.dir, "tools")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return b
}

func model(t *testing.T) string {
	path, err := filepath.Abs("../" + demo)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (b *workFolder) write(t *testing.T, name, text string) {
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

var (
	quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	call   = regexp.MustCompile(`(?:^|[\s(])(leat|\./build\.sh) +([a-z]+)([^|>)]*)`)
	flag   = regexp.MustCompile(`(?:^|[\s/])(--?[a-zA-Z][a-z-]*)`)
)

// helpOf is what the program says of one of its commands; "" is of all.
func (b *workFolder) helpOf(t *testing.T, name string) string {
	if _, ok := b.help[name]; !ok {
		out, err := exec.Command(b.leat, strings.Fields(name+" --help")...).Output()
		if err != nil || !strings.Contains(string(out), "Usage:\n  leat "+name) {
			t.Errorf("leat has no command %q (%v)", name, err)
		}
		if advanced := "--help-advanced"; strings.Contains(string(out), advanced) {
			if out, err = exec.Command(b.leat, strings.Fields(name+" "+advanced)...).Output(); err != nil {
				t.Errorf("leat %s %s: %v", name, advanced, err)
			}
		}
		b.help[name] = string(out)
	}
	return b.help[name]
}

// known checks commands and flags against the program's own help.
func (b *workFolder) known(t *testing.T, c command) {
	for _, m := range call.FindAllStringSubmatch(quoted.ReplaceAllString(c.line, "Q"), -1) {
		switch {
		case m[1] == "./build.sh":
			if !strings.Contains(read(t, "build.sh"), "\n  "+m[2]+" ") {
				t.Errorf("%s: %q: build.sh has no verb %q", c.page, c.line, m[2])
			}
		case m[2] != "help":
			for _, f := range flag.FindAllStringSubmatch(m[3], -1) {
				if !hasFlag(b.helpOf(t, m[2]), f[1]) {
					t.Errorf("%s: %q: leat %s has no flag %s", c.page, c.line, m[2], f[1])
				}
			}
		}
	}
}

func hasFlag(help, name string) bool {
	return regexp.MustCompile(`(?m)^  .{0,5}` + regexp.QuoteMeta(name) + `[ ,\n]`).MatchString(help)
}

// flagsKnown checks the flags, and the commands of a conversation, that a page names by themselves.
func (b *workFolder) flagsKnown(t *testing.T, page, text string) {
	others := map[string]bool{"--gpus": true} // containers'
	talk := read(t, "cmd/leat/commands.go")
	for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
		if name, ok := strings.CutPrefix(span[1], "/"); ok && !strings.Contains(name, "/") {
			name, _, _ = strings.Cut(name, " ")
			if !strings.Contains(talk, `{name: "`+name+`",`) {
				t.Errorf("%s: a conversation has no command /%s", page, name)
			}
		}
		if !strings.HasPrefix(span[1], "-") || span[1] == "-" {
			continue
		}
		for _, f := range flag.FindAllStringSubmatch(quoted.ReplaceAllString(span[1], "Q"), -1) {
			found := others[f[1]]
			for _, name := range []string{"run", "doctor", "bench", "decompose", "plan", "eval", "tokenize", "perplexity", "embed", "show"} {
				found = found || hasFlag(b.helpOf(t, name), f[1])
			}
			if !found {
				t.Errorf("%s: no command of leat has the flag %s", page, f[1])
			}
		}
	}
}

// runAll runs each command once, in the pages' order, and looks for what the pages show of outputs.
func (b *workFolder) runAll(t *testing.T, device string, all []command, outputs []string) {
	shown := strings.Contains(read(t, "docs/getting-started.md"), "leat: "+device+": ")
	if !shown {
		t.Logf("outputs are of another device than %s: they are not compared", device)
	}
	done, said := map[string]string{}, ""
	for _, c := range all {
		if _, reason := why(c.line); reason != "" {
			continue
		}
		if !strings.Contains(device, "llvmpipe") && (strings.Contains(c.line, "llvmpipe") || strings.HasPrefix(c.line, "VK_")) {
			t.Logf("%s: %q is about lavapipe, which is not the device here", c.page, c.line)
			continue
		}
		out, ran := done[c.line]
		if !ran {
			out = b.run(t, c)
			done[c.line], said = out, said+out
		}
		for _, want := range c.output {
			if shown && !shows(out, want) {
				t.Errorf("%s: %q should say\n%s\nand says\n%s", c.page, c.line, want, out)
			}
		}
	}
	for _, want := range outputs {
		if shown && !noOutput[want] && !shows(said, want) {
			t.Errorf("no command says\n%s", want)
		}
	}
	t.Logf("%d commands ran", len(done))
}

// noOutput are indented lines that no command prints.
var noOutput = map[string]bool{
	"bytes streamed from disk / the disk's speed,   bytes streamed in all / the link's speed,   all bytes / the GPU's speed": true,
}

var timed = regexp.MustCompile(`\d+(\\\.\d+)? (s|MB/s)`)

// shows: text has the words of want, with other times and rates.
func shows(text, want string) bool {
	want = timed.ReplaceAllString(regexp.QuoteMeta(strings.Join(strings.Fields(want), " ")), `[\d.]+ [A-Za-z/]+`)
	return regexp.MustCompile(want).MatchString(strings.Join(strings.Fields(text), " "))
}

// run is a command's stdout, then its stderr. Its status is that of what the page shows of its output.
func (b *workFolder) run(t *testing.T, c command) string {
	wantStatus := 0
	for _, out := range c.output {
		if strings.HasPrefix(out, "leat: error:") {
			wantStatus = 1
		}
	}
	lines := []string{c.line}
	switch {
	case strings.Contains(c.line, "COMMAND"):
		lines = nil
		for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+)  +[A-Z]`).FindAllStringSubmatch(b.helpOf(t, ""), -1) {
			lines = append(lines, strings.ReplaceAll(c.line, "COMMAND", m[1]))
		}
	case strings.Contains(c.line, "PACK"):
		lines[0] = strings.ReplaceAll(c.line, "PACK", "DIR")
	case strings.Contains(c.line, "SHELL"):
		lines[0] = strings.ReplaceAll(c.line, "SHELL", "bash")
	}
	out := ""
	for _, line := range lines {
		if strings.Contains(line, "$fpath") || strings.Contains(line, "${fpath") {
			line = "fpath=(. .); " + line // zsh's
		}
		cmd := exec.Command("bash", "-c", line) // which becomes the one command of the line, so that the signal reaches it
		cmd.Dir, cmd.Env, cmd.Stdin = b.dir, b.env, strings.NewReader("Tell me a story.")
		if strings.HasPrefix(line, "go ") {
			cmd.Dir, cmd.Env = "..", nil
		}
		var stdout bytes.Buffer
		stderr := untilMeasuring{end: func() { cmd.Process.Signal(os.Interrupt) }}
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		status := cmd.ProcessState.ExitCode()
		if stderr.ended && status == 130 {
			status = 0
		}
		if status != wantStatus {
			t.Errorf("%s: %q: %v, wanted exit status %d\n%s%s", c.page, line, err, wantStatus, stdout.Bytes(), stderr.text)
		}
		out += fmt.Sprintf("%s\n%s\n", stdout.Bytes(), stderr.text)
	}
	return out
}

// untilMeasuring is the stderr of a program that is interrupted, as getting-started.md allows, when it begins to measure the
// machine, which takes a CPU a minute.
type untilMeasuring struct {
	text  []byte
	end   func()
	ended bool
}

func (u *untilMeasuring) Write(p []byte) (int, error) {
	u.text = append(u.text, p...)
	if !u.ended && bytes.Contains(u.text, []byte("leat: measuring this machine")) {
		u.ended = true
		u.end()
	}
	return len(p), nil
}
