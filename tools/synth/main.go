package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"leat/decompose"
	"leat/tools/synth/synthetic"
)

const usage = `Usage: synth [flags] -o FILE [-pack DIR]

Writes a model with random weights. Architectures: %s.
Presets: %s.
A flag that is left out comes from the preset.

Example: go run ./tools/synth -arch llama -preset 8b -type q4_k_m -o 8b.gguf

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	synthetic.Options
	out, pack string
}

// run returns 0, 1 for a failure, 2 for a wrong command line.
func run(ctx context.Context, args []string, out, errw io.Writer) int {
	o, err := parse(args, errw)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if err := write(ctx, o, out); err != nil {
		fmt.Fprintln(errw, "synth: error:", err)
		return 1
	}
	return 0
}

func parse(args []string, errw io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("synth", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.Usage = func() {
		fmt.Fprintf(errw, usage, strings.Join(synthetic.Arches(), ", "), strings.Join(synthetic.Presets(), ", "))
		fs.PrintDefaults()
	}
	fs.StringVar(&o.out, "o", "", "GGUF file to write")
	fs.StringVar(&o.pack, "pack", "", "folder to write as a pack; without -o no GGUF stays")
	fs.StringVar(&o.Arch, "arch", "", "architecture (default: the preset's)")
	fs.StringVar(&o.Preset, "preset", "tiny", "shape to begin from")
	fs.StringVar(&o.Type, "type", "q4_k_m", "q4_k_m, q5_k_m, or a tensor type for all matrices")
	fs.BoolVar(&o.Hollow, "hollow", false, "no weights, only room for them: to plan with, not to run")
	fs.IntVar(&o.BlockCount, "layers", 0, "number of layers")
	fs.IntVar(&o.EmbeddingLength, "dim", 0, "width")
	fs.IntVar(&o.HeadCount, "heads", 0, "query heads")
	fs.IntVar(&o.HeadCountKV, "kv-heads", 0, "key/value heads")
	fs.IntVar(&o.KeyLength, "head-dim", 0, "size of a head")
	fs.IntVar(&o.FeedForwardLength, "ffn", 0, "inner width of the FFN")
	fs.IntVar(&o.ExpertCount, "experts", 0, "experts in a layer")
	fs.IntVar(&o.ExpertUsedCount, "experts-used", 0, "experts used per token")
	fs.IntVar(&o.ExpertFeedForwardLength, "expert-ffn", 0, "inner width of an expert")
	fs.IntVar(&o.VocabSize, "vocab", 0, "tokens in the vocabulary")
	fs.IntVar(&o.ContextLength, "ctx", 0, "trained context length")
	fs.Float64Var(&o.RopeFreqBase, "rope-base", 0, "rope frequency base")
	fs.Float64Var(&o.RopeFactor, "rope-factor", 0, "Llama 3's rope factor; writes rope_freqs")
	fs.BoolVar(&o.TiedEmbeddings, "tied", false, "no output matrix of its own")
	fs.Uint64Var(&o.Seed, "seed", 0, "of all that is random")
	fs.Float64Var(&o.RouterSkew, "router-skew", 0, "how unequal experts' popularity is: 0 not at all, 1 strongly")
	fs.IntVar(&o.Shards, "shards", 1, "number of GGUF files")
	fs.Int64Var(&o.Alignment, "alignment", 0, "of tensors in the file (default 32)")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 || (o.out == "" && o.pack == "") {
		err := errors.New("want -o FILE or -pack DIR, and no other arguments")
		fmt.Fprintln(errw, "synth: error:", err)
		return o, err
	}
	return o, nil
}

func write(ctx context.Context, o options, out io.Writer) error {
	gguf := o.out
	if gguf == "" {
		gguf = strings.TrimRight(o.pack, "/\\") + ".synth.gguf"
		defer func() {
			for _, p := range synthetic.Paths(gguf, o.Options) {
				os.Remove(p)
			}
		}()
	}
	var total int64
	o.Progress = func(_, t int64) {
		total = t
	}
	start := time.Now()
	if err := synthetic.Write(gguf, o.Options); err != nil {
		return err
	}
	paths := synthetic.Paths(gguf, o.Options)
	report(out, paths[0], total, time.Since(start))
	if o.pack == "" {
		return nil
	}
	start = time.Now()
	if _, err := decompose.Run(ctx, paths[0], o.pack, decompose.Options{}); err != nil {
		return err
	}
	report(out, o.pack, total, time.Since(start))
	return nil
}

func report(out io.Writer, path string, bytes int64, d time.Duration) {
	fmt.Fprintf(out, "%s: %.2f GiB (%d bytes of tensors) in %.2f s, %.2f GB/s\n",
		path, float64(bytes)/(1<<30), bytes, d.Seconds(), float64(bytes)/1e9/d.Seconds())
}
