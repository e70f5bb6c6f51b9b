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

	"leat/engine"
	"leat/vk"
	"leat/vk/mem"
)

const usage = `Usage: soak [flags] MODEL

Generates the same greedy text in round after round, for a time or until so many tokens
are made, and writes what the process takes as CSV. At the end it says whether memory, handles or speed drift, and whether each
round's text was the same.

Exit status: 0 nothing drifts, 1 something does or it failed, 2 wrong command line.

Example: go run ./tools/soak -for 1h -vram 6GiB -csv soak.csv 70b.gguf

`

type options struct {
	model          string
	duration       time.Duration
	tokens         int64 // 0: as many as the time allows
	every          time.Duration
	csv            string
	vram, ram      size // 0: the engine's choice
	ctx, prompt, n int
	disable        string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, errw io.Writer) int {
	o, err := parse(args, errw)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if err := soak(ctx, o, out); err != nil {
		fmt.Fprintln(errw, "soak: error:", err)
		return 1
	}
	return 0
}

func parse(args []string, errw io.Writer) (o options, err error) {
	fs := flag.NewFlagSet("soak", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.Usage = func() { fmt.Fprint(errw, usage); fs.PrintDefaults() }
	fs.DurationVar(&o.duration, "for", time.Hour, "how long")
	fs.Int64Var(&o.tokens, "tokens", 0, "stop after the round in which so many tokens were made; 0: after -for alone")
	fs.DurationVar(&o.every, "every", 10*time.Second, "between samples")
	fs.StringVar(&o.csv, "csv", "", "write the samples to a file, too")
	fs.Var(&o.vram, "vram", "VRAM budget, as 6GiB; 0: all")
	fs.Var(&o.ram, "ram", "RAM budget; 0: all")
	fs.IntVar(&o.ctx, "ctx", 1024, "tokens of context")
	fs.IntVar(&o.prompt, "p", 32, "tokens of the prompt")
	fs.IntVar(&o.n, "n", 64, "tokens to generate in a round")
	fs.StringVar(&o.disable, "disable", "", "device features not to use: "+strings.Join(vk.Disabled(), ","))
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() != 1 || o.n < 2 || o.prompt < 1 || o.prompt+o.n > o.ctx || o.duration <= 0 || o.every <= 0 || o.tokens < 0 {
		err := errors.New("want one MODEL, -p of at least 1, -n of at least 2, both within -ctx, -for and -every above 0, -tokens not below")
		fmt.Fprintln(errw, "soak: error:", err)
		return o, err
	}
	o.model = fs.Arg(0)
	return o, nil
}

// size is a byte count as a flag.
type size int64

func (s *size) String() string { return fmt.Sprint(int64(*s)) }

func (s *size) Set(text string) error {
	var v float64
	var unit string
	if n, _ := fmt.Sscanf(text, "%f%s", &v, &unit); n == 0 || v < 0 {
		return fmt.Errorf("found %q, wanted a size like 2GiB", text)
	}
	bytes, ok := map[string]float64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
	if !ok {
		return fmt.Errorf("found %q, wanted a size like 2GiB", text)
	}
	*s = size(v * bytes)
	return nil
}

// soak runs rounds until the time is over, or ctx, and gives the verdict.
func soak(ctx context.Context, o options, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	eo := engine.Options{ContextLength: o.ctx, DeviceBytes: int64(o.vram), HostBytes: int64(o.ram)}
	if o.disable != "" {
		eo.Tuning.Disable = strings.Split(o.disable, ",")
	}
	m, err := engine.Load(ctx, o.model, eo)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	w := io.Writer(out)
	if o.csv != "" {
		f, err := os.Create(o.csv)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		w = io.MultiWriter(out, f)
	}
	g, err := openGauge(m)
	if err != nil {
		return err
	}
	defer g.close()
	p := engine.DetailsOf(m).Plan
	if x := p.Experts; x != nil {
		fmt.Fprintf(out, "# %d slots of VRAM for %d experts, %d of which rest in RAM\n", x.Slots(), x.Total(), x.HostCount)
	}
	fmt.Fprintf(out, "# %s on %s: %s of VRAM, %s streamed a token, %s from disk\n", o.model, m.DeviceName(), mem.FormatBytes(p.DeviceBytes), mem.FormatBytes(p.StreamedBytes), mem.FormatBytes(p.DiskBytes))
	r := &rounds{m: m, s: s, o: o}
	done := make(chan error, 1)
	go func() {
		defer cancel() // the samples end with the rounds
		done <- r.run(ctx)
	}()
	samples, sampleErr := g.watch(ctx, r, o.every, w)
	if sampleErr != nil {
		cancel()
	}
	if err := errors.Join(<-done, sampleErr); err != nil {
		return err
	}
	return verdict(out, samples, r)
}
