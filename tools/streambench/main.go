package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

const usage = `Usage: streambench [flags] [MODEL]

Prints what the link uploads (-link) and the disk that MODEL lies on reads (-disk), swept over
queues, depths and sizes. What decoding makes of them: leat bench.

Example: go run ./tools/streambench -link -disk 8b.gguf

`

type options struct {
	model      string
	link, disk bool
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
	if err := sweep(ctx, o, out); err != nil {
		fmt.Fprintln(errw, "streambench: error:", err)
		return 1
	}
	return 0
}

func parse(args []string, errw io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("streambench", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.Usage = func() { fmt.Fprint(errw, usage); fs.PrintDefaults() }
	fs.BoolVar(&o.link, "link", false, "sweep uploads by lanes and size")
	fs.BoolVar(&o.disk, "disk", false, "sweep direct reads by depth and size")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if !o.link && !o.disk || fs.NArg() > 1 || o.disk && fs.NArg() == 0 {
		err := errors.New("want -link, or -disk and a MODEL")
		fmt.Fprintln(errw, "streambench: error:", err)
		return o, err
	}
	o.model = fs.Arg(0)
	return o, nil
}

func sweep(ctx context.Context, o options, out io.Writer) error {
	if o.link {
		if err := sweepLink(ctx, out); err != nil {
			return err
		}
	}
	if o.disk {
		return sweepDisk(ctx, o.model, out)
	}
	return nil
}
