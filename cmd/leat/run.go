package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"leat/engine"
	"leat/engine/sample"
)

func init() { commands = append(commands, newRunCmd) }

// runFlags are the flags of leat run.
type runFlags struct {
	modelFlags
	set        settings
	prompt     string
	file       string
	raw        bool
	json       bool
	logprobs   int
	system     string
	systemFile string
	keepAlive  time.Duration
	noHistory  bool
	resume     bool
	given      func(flag string) bool
}

const runLong = `Complete a prompt, or talk with a model.

The prompt is -p's text, -f's file, or all of stdin where that is no terminal (less a
newline at its end). The completion alone goes to stdout. With none of these, on a
terminal, a conversation begins: /help lists its commands.

The prompt is wrapped in the model's chat template, where the file has one; --raw
gives it to the model as it is. Control tokens in the prompt are plain text.

The system prompt is --system's text, or --system-file's file, or else the file
leat/system.txt in your config folder ($XDG_CONFIG_HOME or ~/.config on Linux,
~/Library/Application Support on macOS, %AppData% on Windows), where there is one;
--system "" is none. A conversation keeps what was typed in the file history beside it.

The newest 20 conversations are kept in the folder leat/talks of your state folder
($XDG_STATE_HOME or ~/.local/state on Linux, ~/Library/Application Support on macOS,
%LocalAppData% on Windows), for you alone to read, however they end. --resume goes on
with the last one; /load takes any. --no-history and /private keep nothing.

A conversation holds on to what the model has read: with each question only what is new
is prefilled. When the context is full, the oldest turns are left out, with a notice.
--keep-alive 10m frees the GPU when nothing was asked for ten minutes; the next question
then loads the model again, and has the whole conversation prefilled.`

const runExample = `  leat run demo
  leat run --resume
  leat run demo -p "Tell me a story about a dog and a ball."
  leat run qwen3-30b.gguf -p "Why is the sky blue?" -n 200 --vram 6GiB --stats
  git diff | leat run qwen3-30b.gguf --system "Write a commit message for this diff."
  leat run llama-pack/ -f prompt.txt --raw --temp 0`

func newRunCmd(a *app) *cobra.Command {
	f := &runFlags{set: defaultSettings()}
	cmd := &cobra.Command{
		Use:     "run MODEL [-p TEXT | -f FILE | --resume]",
		Short:   "Complete a prompt, or talk with a model",
		Long:    runLong,
		Example: runExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.resume && len(args) == 0 {
				return nil
			}
			return wants("MODEL")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), a, strings.Join(args, ""))
		},
	}
	fs := cmd.Flags()
	f.registerAll(fs)
	f.given = fs.Changed
	hideAdvanced(cmd, "chunk", "disable", "dry-allowed-length", "dry-base", "dry-multiplier", "dry-penalty-last-n", "dry-sequence-breaker", "enable",
		"expert-cache", "frequency-penalty", "ignore-eog", "logit-bias", "logprobs", "one-queue", "presence-penalty", "repeat-last-n",
		"template-arg", "trace-experts", "typical-p", "validate", "xtc-probability", "xtc-threshold")
	return cmd
}

func (f *runFlags) registerAll(fs *pflag.FlagSet) {
	f.register(fs)
	f.registerRouting(fs)
	registerSettings(fs, &f.set)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "typical" { // llama.cpp's other name of it
			name = "typical-p"
		}
		return pflag.NormalizedName(name)
	})
	fs.StringVarP(&f.prompt, "prompt", "p", "", "the prompt")
	fs.StringVarP(&f.file, "file", "f", "", "read the prompt from a file; - is stdin")
	fs.BoolVar(&f.raw, "raw", false, "no chat template")
	fs.StringVar(&f.system, "system", "", "the system prompt")
	fs.StringVar(&f.systemFile, "system-file", "", "read the system prompt from a file")
	fs.BoolVar(&f.json, "json", false, "print one JSON object at the end instead of streaming text")
	fs.IntVar(&f.logprobs, "logprobs", 0, "with --json, the log probability of each token, and of so many of the likeliest beside it")
	fs.DurationVar(&f.keepAlive, "keep-alive", 0, "free the GPU when nothing was asked for so long, as 10m; the next question loads the model again (default: never)")
	fs.BoolVar(&f.noHistory, "no-history", false, "keep neither the conversation nor what is typed for the arrow keys of later ones")
	fs.BoolVar(&f.resume, "resume", false, "go on with the last conversation, with its model or with MODEL")
}

func (f *runFlags) run(ctx context.Context, a *app, arg string) error {
	if err := f.check(); err != nil {
		return err
	}
	if arg != "" || !f.resume {
		if err := modelExists(arg); err != nil {
			return err
		}
	}
	talk, prompt, err := f.input(a)
	if err != nil {
		return err
	}
	system, err := f.systemPrompt()
	if err != nil {
		return err
	}
	var last *keptTalk
	if f.resume {
		if last, err = lastTalk(); err != nil {
			return err
		}
		arg = cmp.Or(arg, last.talk.Model)
	}
	if err := f.asks(a, arg, []string{f.file, f.systemFile}); err != nil {
		return err
	}
	model := &resident{idle: f.keepAlive, load: func(ctx context.Context) (*engine.Model, error) { return f.load(ctx, a, arg) }}
	defer model.Close()
	// Loading here means that a model that can't be loaded is an error at once.
	if err := model.use(ctx, func(*engine.Model, *engine.Session) error { return nil }); err != nil {
		return err
	}
	facts, _ := model.facts()
	conv := conversation{Raw: f.raw || !facts.hasTemplate}
	switch {
	case !conv.Raw:
		conv.System = system
	case f.given("system") || f.given("system-file"):
		return usageErrorf("this model's file has no chat template, so there is no place for a system prompt")
	}
	if talk {
		var predict *predictor // of what is known: a person waits for a prompt
		if f.set.Stats {
			if predict = f.newPredictor(ctx, a, arg, notNow); predict == nil {
				fmt.Fprintf(a.err, "leat: nothing is predicted: \"leat plan %s\" measures what this machine does with it\n", arg)
			}
		}
		r := newRepl(a, model, &openTalk{name: arg, conv: conv, set: f.set, start: f.set.clone()}, modelReplies(predict))
		r.talk.keep = &keeper{dir: f.keptDir(), model: pathOfModel(arg), warn: func(err error) { r.ui.note("%v", err) }}
		if last != nil {
			if err := f.goOn(r, last); err != nil {
				return err
			}
		}
		return f.converse(ctx, a, r, last)
	}
	conv.ask(prompt)
	return f.once(ctx, a, model, &conv, func() *predictor { return f.newPredictor(ctx, a, arg, saysMeasuring(a)) })
}

func (f *runFlags) check() error {
	switch {
	case f.given("system") && f.given("system-file"):
		return usageErrorf("--system and --system-file exclude each other")
	case f.raw && (f.given("system") || f.given("system-file")):
		return usageErrorf("--raw leaves no place for a system prompt: write it into the prompt")
	case f.resume && (f.given("prompt") || f.given("file") || f.raw):
		return usageErrorf("--resume goes on with a conversation as it was: -p, -f and --raw have no place in it")
	case f.logprobs < 0 || f.logprobs > sample.MaxLogprobs:
		return usageErrorf("--logprobs: found %d, wanted 0 to %d", f.logprobs, sample.MaxLogprobs)
	case f.logprobs > 0 && !f.json:
		return usageErrorf("--logprobs needs --json, which has a place for them")
	case f.keepAlive < 0:
		return usageErrorf("--keep-alive: found %s, wanted 0 (for as long as the program runs) or more", f.keepAlive)
	}
	if err := f.set.Validate(); err != nil {
		return &usageError{text: err.Error()}
	}
	return nil
}

// input decides between a conversation and one prompt, and reads that.
func (f *runFlags) input(a *app) (talk bool, prompt string, err error) {
	if f.given("prompt") || f.given("file") {
		prompt, err = readText(a, f.prompt, f.file)
		return false, prompt, err
	}
	if !isTerminal(a.in) {
		data, err := readAll(a.in, maxText)
		if err != nil {
			return false, "", fmt.Errorf("read the prompt from stdin: %w", err)
		}
		prompt = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
		if prompt == "" {
			return false, "", usageErrorf("no text: give it with -p TEXT, -f FILE or on stdin; on a terminal, a conversation begins")
		}
		return false, prompt, nil
	}
	if !isTerminal(a.out) || f.json {
		return false, "", usageErrorf("a conversation needs a terminal for its answers: give one prompt with -p TEXT or -f FILE (-f - reads stdin)")
	}
	return true, "", nil
}

func (f *runFlags) systemPrompt() (string, error) {
	switch {
	case f.given("system"):
		return f.system, nil
	case f.given("system-file"):
		return readSystem(f.systemFile)
	case f.raw:
		return "", nil
	}
	return defaultSystem()
}

// once answers one prompt. What the model thinks is no part of the completion: it goes
// to stderr. What a prediction needs is measured last, where it must be, when the answer is
// there and the device is free.
func (f *runFlags) once(ctx context.Context, a *app, model *resident, conv *conversation, predict func() *predictor) error {
	var res *answer
	var of engine.Details
	err := model.use(ctx, func(m *engine.Model, s *engine.Session) error {
		ids, split, err := encode(ctx, m, conv, &f.set)
		if err != nil {
			return err
		}
		out, p := f.output(a), f.set.params(m, 0)
		p.Logprobs = f.logprobs
		res, err = generate(ctx, m, s, request{ids: ids, split: split, p: p, show: out.show})
		if err == nil || res.Text+res.Thinking != "" {
			out.finish()
		}
		if err == nil {
			of = engine.DetailsOf(m)
		}
		return hintContext(err)
	})
	a.tests.tell(f.set.Stats)
	if err != nil {
		return err
	}
	res.Stats.LoadSeconds = model.took.Seconds()
	for _, line := range res.Stats.Shrinks {
		printLines(a.err, "leat: ", line)
	}
	if f.set.Stats {
		if !f.json {
			printStats(a.err, &res.Stats)
		}
		model.Close()
		res.Stats.predict(predict(), of)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if f.json {
		return a.printJSON(res)
	}
	if res.cut() && isTerminal(a.err) { // a script has --json
		fmt.Fprintf(a.err, "leat: cut at %s, as --tokens has it\n", res.length())
	}
	if p := res.Stats.prediction(); p != "" {
		fmt.Fprintf(a.err, "leat: %s\n", p)
	}
	return nil
}

// plainOutput is stdout for a script: the very text, and no thinking.
type plainOutput struct {
	out, thinking io.Writer // thinking nil: it isn't shown
	status        *status   // says then that the model thinks
	begin         time.Time
	thought       bool // and nothing answered yet
	last          byte
}

func (p *plainOutput) show(thinking, text string) error {
	switch {
	case thinking == "":
	case p.thinking != nil:
		p.thought = true
		io.WriteString(p.thinking, printable(thinking))
	case p.last == 0:
		p.thought = true
		p.begin = sayThinking(p.status, p.begin)
	}
	if p.thought {
		text = strings.TrimLeft(text, "\n")
	}
	if text == "" {
		return nil
	}
	if p.thought && p.thinking != nil {
		io.WriteString(p.thinking, "\n")
	}
	p.thought = false
	p.status.clear()
	p.last = text[len(text)-1]
	if _, err := io.WriteString(p.out, text); err != nil {
		return fmt.Errorf("write the completion: %w", err)
	}
	return nil
}

func (p *plainOutput) finish() {
	p.status.close()
	if p.last != '\n' {
		io.WriteString(p.out, "\n")
	}
}

// output is where the pieces of one answer go.
func (f *runFlags) output(a *app) interface {
	show(thinking, text string) error
	finish()
} {
	p := &plainOutput{out: a.out, status: a.newStatus()}
	switch {
	case f.json:
		p.out, p.thinking = io.Discard, io.Discard
	case isTerminal(a.out):
		return a.newScreen(f.set.ShowThinking)
	case f.set.ShowThinking:
		p.thinking = a.err
	}
	return p
}

func (f *runFlags) converse(ctx context.Context, a *app, r *repl, last *keptTalk) error {
	past, err := openHistory(f.historyPath())
	if err != nil {
		r.ui.note("%v", err)
	}
	term, err := openTerminal(past, r.complete, func(err error) { r.ui.note("%v", err) })
	if err != nil {
		return fmt.Errorf("open the terminal: %w", err)
	}
	defer r.endTalk() // in a panic too
	defer term.Close()
	atExit := func() {
		r.talk.keep.flush()
		term.Restore()
	}
	a.end.atExit.Store(&atExit)
	defer a.end.atExit.Store(nil)
	// From here on Ctrl-C is the conversation's; other signals still end it.
	ctx, stop := a.end.ownInterrupt(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { term.Close() })()
	r.ui.term = term
	r.welcome()
	if last != nil {
		r.showResumed(last)
	}
	err = r.loop(ctx)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(a.out)
	}
	return err
}

func (f *runFlags) historyPath() string {
	dir, err := configDir()
	if f.noHistory || err != nil {
		return ""
	}
	return filepath.Join(dir, "history")
}

// keptDir is where talks are kept, "" for nowhere.
func (f *runFlags) keptDir() string {
	dir, err := talksDir()
	if f.noHistory || err != nil {
		return ""
	}
	return dir
}
