package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"leat/internal/bench"
)

func init() { commands = append(commands, newBenchCmd) }

// benchFlags are the flags of leat bench.
type benchFlags struct {
	modelFlags
	prompts, tokens, depths []int
	repetitions             int
	limit                   time.Duration
	vrams, rings            sizesFlag
	tiers                   []string
	emulate, again          bool
	json, md, csv           bool
	svg, timeline, trace    string
	uses                    string
	profile                 string
	ops                     bool
	given                   func(flag string) bool
}

const benchLong = `Measure how fast a model runs, and what that takes of the machine.

Each row is a test, named as llama-bench names it: pp512 reads a prompt of 512 tokens,
tg128 generates 128, and @d8192 does it with 8192 tokens in the context already. Lists
make several: -p 128,512 -d 0,8192. Beside each speed stand what was predicted, the
bytes over the link and from disk and VRAM against what these were measured to do by
themselves, how far the lanes overlapped, CPU, heat and energy where they can be read.

A row takes about as long as --limit at most: prompts that would take longer become
shorter, generations stop, and the names of the rows and a note say so. Ctrl-C prints
what was measured until then.

--ops lists the kernels of each row: how long each ran, and at what rate.

--vram 2GiB,4GiB,8GiB runs all tests within each budget; --svg draws the speeds with the
predicted curve. --timeline draws what disk, link and GPU did for one token; --trace
writes the same of eight as a trace for ui.perfetto.dev. --experts draws how often each
layer of a mixture used each of its experts.

--tier gives the model no more VRAM and RAM than a machine with that GPU has ("all": each
that fits here); with --emulate-bandwidth its link, disk and VRAM are slowed down to that
machine's as well. Such rows are emulated, and say so: kernels stay this GPU's.

Without a MODEL it is the demo. docs/bench.md explains every figure and the JSON.

Exit status: 0 all was measured; 1 something failed, what was measured is printed;
2 the command line is wrong; 130 interrupted.`

const benchExample = `  leat bench
  leat bench llama-70b.gguf -p 512 -n 128 -d 0,8192 --vram 6GiB
  leat bench llama-70b.gguf -n 32 -p 0 --vram 6GiB,12GiB,24GiB --svg speeds.svg --md
  leat bench llama-8b.gguf --tier gtx1660,rtx3060,rtx4090 --emulate-bandwidth
  leat bench llama-8b.gguf --vram 2GiB --timeline token.svg --trace token.json --json`

func newBenchCmd(a *app) *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:     "bench [MODEL]",
		Short:   "Measure how fast a model runs",
		Long:    benchLong,
		Example: benchExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Equal(f.tiers, []string{"list"}) {
				return f.listTiers(a)
			}
			return f.run(cmd.Context(), a, append(args, "demo")[0])
		},
	}
	fs := cmd.Flags()
	f.register(fs)
	f.registerOwn(fs)
	f.given = fs.Changed
	return cmd
}

func (f *benchFlags) registerOwn(fs *pflag.FlagSet) {
	vram := fs.Lookup("vram")
	vram.Value, vram.Usage = &f.vrams, "VRAM to use at most, as 6GiB, or several budgets, as 2GiB,4GiB (default: what is free, less a reserve)"
	fs.Lookup("ctx").Usage = "tokens of context (default: what the tests need)"
	fs.IntSliceVarP(&f.prompts, "prompt", "p", []int{512}, "tokens of the prompts to read; 0: none")
	fs.IntSliceVarP(&f.tokens, "tokens", "n", []int{128}, "tokens to generate; 0: none")
	fs.IntSliceVarP(&f.depths, "depth", "d", []int{0}, "tokens in the context before")
	fs.IntVarP(&f.repetitions, "repetitions", "r", 3, "how often each test is timed")
	fs.DurationVar(&f.limit, "limit", 30*time.Second, "about how long a row may take; 0: as long as it takes")
	fs.StringSliceVar(&f.tiers, "tier", nil, "run as on machines with these GPUs, as rtx3060,rtx4090; \"all\": each that fits, \"list\": names them")
	fs.BoolVar(&f.emulate, "emulate-bandwidth", false, "with --tier: slow link, disk and VRAM down to that machine's")
	fs.BoolVar(&f.again, "again", false, "measure anew what disk, link and VRAM can do")
	fs.BoolVar(&f.json, "json", false, "print as JSON")
	fs.BoolVar(&f.md, "md", false, "print as a Markdown table")
	fs.BoolVar(&f.csv, "csv", false, "print as CSV")
	fs.StringVar(&f.svg, "svg", "", "draw tok/s against VRAM into an SVG file")
	fs.StringVar(&f.timeline, "timeline", "", "draw what happened during one token into an SVG file")
	fs.StringVar(&f.trace, "trace", "", "write a trace of some tokens for ui.perfetto.dev")
	fs.StringVar(&f.uses, "experts", "", "draw how often each expert of each layer was used into an SVG file")
	fs.BoolVar(&f.ops, "ops", false, "say what the GPU's time went to, kernel by kernel (slows it down somewhat)")
	fs.Var(&f.rings, "ring", "VRAM that streamed weights pass through, or several sizes (default: chosen)")
	fs.StringVar(&f.profile, "cpuprofile", "", "write a CPU profile of the whole run")
	for _, name := range []string{"ring", "cpuprofile"} { // for who works on leat
		_ = fs.MarkHidden(name)
	}
}

func (f *benchFlags) check() error {
	for _, l := range []struct {
		name        string
		values      []int
		least, most int
	}{{"prompt", f.prompts, 0, 1 << 24}, {"tokens", f.tokens, 0, 1 << 24}, {"depth", f.depths, 0, 1 << 24}, {"repetitions", []int{f.repetitions}, 1, 1000}} {
		for _, v := range l.values {
			if v < l.least || v > l.most {
				return usageErrorf("--%s: found %d, wanted %d to %d", l.name, v, l.least, l.most)
			}
		}
	}
	formats := 0
	for _, on := range []bool{f.json, f.md, f.csv} {
		if on {
			formats++
		}
	}
	switch {
	case formats > 1:
		return usageErrorf("--json, --md and --csv exclude each other")
	case f.limit < 0:
		return usageErrorf("--limit: found %s, wanted 0 (none) or more", f.limit)
	case len(f.tiers) > 0 && f.given("vram"):
		return usageErrorf("--tier sets the VRAM: it and --vram exclude each other")
	case f.emulate && len(f.tiers) == 0:
		return usageErrorf("--emulate-bandwidth belongs to --tier")
	case len(f.tests()) == 0:
		return usageErrorf("-p 0 and -n 0 leave nothing to measure")
	}
	if need := bench.Tokens(f.tests()); f.ctx > 0 && f.ctx < need {
		return usageErrorf("--ctx: found %d, these tests need %d", f.ctx, need)
	}
	_, err := f.tiersAsked()
	return err
}

// tests lists the rows: by depth, prompts first.
func (f *benchFlags) tests() (tests []bench.Test) {
	for _, d := range slices.Compact(slices.Sorted(slices.Values(f.depths))) {
		for _, p := range f.prompts {
			if p > 0 {
				tests = append(tests, bench.Test{Prompt: p, Depth: d})
			}
		}
		for _, n := range f.tokens {
			if n > 0 {
				tests = append(tests, bench.Test{Generate: n, Depth: d})
			}
		}
	}
	return tests
}

func (f *benchFlags) run(ctx context.Context, a *app, arg string) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.asks(a, arg, nil, result{flag: "svg", path: f.svg}, result{flag: "timeline", path: f.timeline}, result{flag: "trace", path: f.trace},
		result{flag: "experts", path: f.uses}, result{"cpuprofile", f.profile, true}); err != nil {
		return err
	}
	var r *bencher
	if f.profile != "" {
		var profile bytes.Buffer
		if err := pprof.StartCPUProfile(&profile); err != nil {
			return err
		}
		defer func() {
			pprof.StopCPUProfile()
			if r != nil { // the model is there
				err = errors.Join(err, f.results.fill(f.profile, func(w io.Writer) error { _, err := profile.WriteTo(w); return err }))
			}
		}()
	}
	if r, err = f.newBencher(ctx, a, arg); err != nil {
		r = nil // closed
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	runErr := r.runAll(ctx)
	r.status.close()
	printErr := r.print()
	if printErr == nil && r.report.has(func(*bench.Row) bool { return true }) {
		printErr = r.draw()
	}
	return cmp.Or(runErr, printErr)
}
