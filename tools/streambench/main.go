package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"

	"leat/engine"
)

const usage = `Usage: streambench [flags] MODEL

Prints what the link uploads (-link), the CPU writes to device memory (-rebar) and the
disk reads (-disk) by themselves, then for each VRAM budget the decode speed and the
bytes that moved.

Example: go run ./tools/streambench -link -disk -vram 2GiB,0 -ram 0,300MiB 8b.gguf

`

type options struct {
	model          string
	link, disk     bool
	rebar          bool
	vram, ram      sizes // 0: the engine's choice
	ring           sizes
	ctx, prompt, n int
	chunk          int
	oneQueue       bool
	discrete       bool
	spreads        spreads
	slots          counts
	pieces         sizes
	profile        string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
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
	if err := bench(ctx, o, out); err != nil {
		fmt.Fprintln(errw, "streambench: error:", err)
		return 1
	}
	return 0
}

func parse(args []string, errw io.Writer) (options, error) {
	o := options{vram: sizes{0}, ram: sizes{0}, ring: sizes{0}, pieces: sizes{0}, slots: counts{0}, spreads: spreads{engine.Even}}
	fs := flag.NewFlagSet("streambench", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.Usage = func() { fmt.Fprint(errw, usage); fs.PrintDefaults() }
	fs.BoolVar(&o.link, "link", false, "sweep uploads by lanes and size")
	fs.BoolVar(&o.disk, "disk", false, "sweep direct reads by depth and size")
	fs.BoolVar(&o.rebar, "rebar", false, "sweep the CPU's writes into mapped device memory by threads and size")
	fs.BoolVar(&o.discrete, "discrete", false, "upload weights even where device and host have one memory")
	fs.Var(&o.vram, "vram", "VRAM budgets, as 2GiB,6GiB; 0: all")
	fs.Var(&o.ram, "ram", "RAM budgets; 0: all")
	fs.Var(&o.ring, "ring", "sizes of the VRAM ring; 0: the plan's")
	fs.Var(&o.spreads, "spread", "which units are resident: even, prefix, edges")
	fs.Var(&o.slots, "slots", "numbers of staging slots; 0: the plan's")
	fs.Var(&o.pieces, "piece", "sizes of a staging slot; 0: the plan's")
	fs.IntVar(&o.ctx, "ctx", 1024, "tokens of context")
	fs.IntVar(&o.prompt, "p", 32, "tokens of the prompt")
	fs.IntVar(&o.n, "n", 16, "tokens to generate")
	fs.IntVar(&o.chunk, "chunk", 0, "most tokens of a prompt in one step; 0: the plan's")
	fs.BoolVar(&o.oneQueue, "one-queue", false, "upload on the compute queue")
	fs.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the decoding to a file")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() != 1 || o.n < 1 || o.prompt < 1 {
		err := errors.New("want one MODEL, -p and -n of at least 1")
		fmt.Fprintln(errw, "streambench: error:", err)
		return o, err
	}
	o.model = fs.Arg(0)
	return o, nil
}

// counts is a list of numbers.
type counts []int

func (c *counts) String() string { return "0" }

func (c *counts) Set(text string) error {
	*c = nil
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return fmt.Errorf("found %q, wanted a number like 24", word)
		}
		*c = append(*c, n)
	}
	return nil
}

// spreads is a list of ways to choose resident units.
type spreads []engine.Spread

func (s *spreads) String() string { return "even" }

func (s *spreads) Set(text string) error {
	*s = nil
	for _, word := range strings.Split(text, ",") {
		known := []engine.Spread{engine.Even, engine.Prefix, engine.Edges}
		i := slices.IndexFunc(known, func(k engine.Spread) bool { return k.String() == word })
		if i < 0 {
			return fmt.Errorf("found %q, wanted even, prefix or edges", word)
		}
		*s = append(*s, known[i])
	}
	return nil
}

// sizes is a list of byte counts.
type sizes []int64

func (s *sizes) String() string { return "0" }

func (s *sizes) Set(text string) error {
	*s = nil
	for _, word := range strings.Split(text, ",") {
		unit := int64(1)
		for _, u := range []struct {
			suffix string
			bytes  int64
		}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if rest, ok := strings.CutSuffix(word, u.suffix); ok {
				word, unit = rest, u.bytes
			}
		}
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || v < 0 {
			return fmt.Errorf("found %q, wanted a size like 2GiB", word)
		}
		*s = append(*s, int64(v*float64(unit)))
	}
	return nil
}

func bench(ctx context.Context, o options, out io.Writer) error {
	if o.link {
		if err := sweepLink(ctx, out); err != nil {
			return err
		}
	}
	if o.rebar {
		if err := sweepReBAR(ctx, out); err != nil {
			return err
		}
	}
	if o.disk {
		if err := sweepDisk(ctx, o.model, out); err != nil {
			return err
		}
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, p := range o.points() {
		if err := decode(ctx, o, p, out); err != nil {
			return err
		}
	}
	return nil
}

// points are the combinations of all that is swept.
func (o *options) points() (list []engine.Options) {
	for _, vram := range o.vram {
		for _, ram := range o.ram {
			for _, ring := range o.ring {
				for _, spread := range o.spreads {
					for _, slots := range o.slots {
						for _, piece := range o.pieces {
							list = append(list, engine.Options{
								ContextLength: o.ctx, DeviceBytes: vram, HostBytes: ram,
								Tuning: engine.Tuning{
									Chunk: o.chunk, OneQueue: o.oneQueue, Discrete: o.discrete,
									Layout: engine.Layout{RingBytes: ring, Spread: spread, StagingSlots: slots, StagingBytes: piece},
								},
							})
						}
					}
				}
			}
		}
	}
	return list
}
