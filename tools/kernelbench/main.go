package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
)

const usage = `Usage: kernelbench [flags]

Prints a benchstat line for each sample of each kernel, type, shape and tile; at the end, as comments,
the best tile of each.

Example: go run ./tools/kernelbench -kernels mul_mat_vec_int8 -types q4_k,q6_k -rows 1,2,4 -team 16,32,64 -unroll 1,2

`

type options struct {
	device          string
	enable          []string // features that are off by themselves
	kernels         []string
	types           []gguf.Type
	shapes          []shape // nil: the device's
	n               []int
	rows, team, unr []int
	lanes           []int
	positions       int
	run             kernels.CMAttn
	ahead           int   // MiB
	memory          int64 // bytes
	count           int
	overlap         bool
	join            bool
	rope            string
	stats           bool
	ir              string // folder; "": none
	gridGroups      []int  // none: no barriers are measured
	gridKiB         []int
	gridPhases      int
	splits          []kernels.CMTile // of products in halves; zero: the engine's choice
	room            int64            // bytes each of X, its scales, other outputs, memory of the recorder, and an output
	halves          int64            // bytes of a recorder's scratch beside X
}

// shape is a matrix of M rows of K values.
type shape struct{ m, k int }

func (s shape) String() string { return fmt.Sprintf("%dx%d", s.m, s.k) }

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
		fmt.Fprintln(errw, "kernelbench: error:", err)
		return 2
	}
	if err := bench(ctx, o, out); err != nil {
		fmt.Fprintln(errw, "kernelbench: error:", err)
		return 1
	}
	return 0
}

func parse(args []string, errw io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("kernelbench", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.Usage = func() { fmt.Fprint(errw, usage); fs.PrintDefaults() }
	fs.StringVar(&o.device, "device", "", "name, UUID or index; \"\": the best")
	enable := fs.String("enable", "", "features that are off by themselves: "+strings.Join(vk.Enabled(), ", "))
	names := fs.String("kernels", "mul_mat_vec,mul_mat_vec_int8,mul_mat_vec_wide", "of "+strings.Join(kernelNames(), ", "))
	types := fs.String("types", "f16,q8_0,q6_k,q5_k,q4_k,q3_k,q4_0,iq4_xs", "of the weights, or of flash_attn's KV cache; those a kernel lacks are passed over")
	shapes := fs.String("shapes", "", "rows x values of a row, of the weights; default "+gpuShapes+", on a software device "+cpuShapes)
	n := fs.String("n", "1", "rows of X")
	rows := fs.String("rows", "0", "NUM_ROWS of kernels in teams; 0: the engine's choice")
	team := fs.String("team", "0", "TEAM")
	unroll := fs.String("unroll", "0", "UNROLL")
	lanes := fs.String("lanes", "0", "LANES")
	splits := fs.String("split", "", "BMxBNxWMxWN of products in halves, or BMxBNxWMxWNxBKxSTAGES, with an h behind it where they decode by halves, a w for wide loads; \"\": the engine's choice")
	halves := fs.Int("halves", 0, "MiB that weights are decoded into; 0: 512, on a software device 64")
	runs := fs.String("run", "", "SUBGROUPSxSTAGES of flash_attn_cm, as 4x1; \"\": the engine's choice")
	fs.IntVar(&o.positions, "positions", 512, "that a row of a layer, or of flash_attn, attends to; of flash_attn the shape is heads x size of a head")
	fs.IntVar(&o.ahead, "ahead", 0, "MiB of each of a layer's next weights to read beside small ops, into the cache")
	memory := fs.Int("memory", 0, "MiB of weights to rotate through; 0: 1280, on a software device 16")
	fs.IntVar(&o.count, "count", 5, "samples of each")
	fs.BoolVar(&o.overlap, "overlap", false, "let dispatches run side by side: no barriers")
	fs.BoolVar(&o.join, "join", false, "put the parts of attention together in a dispatch of its own")
	fs.StringVar(&o.rope, "rope", "", "a layer's rope: apart, or within the product of Q, K and V; \"\": as suits the device")
	fs.BoolVar(&o.stats, "stats", false, "what the driver says it made of each kernel, as comments: registers, memory")
	fs.StringVar(&o.ir, "ir", "", "folder for the driver's own texts of each kernel, where it has some")
	groups := fs.String("grid", "", "workgroups of a dispatch whose phases wait for one another, and of dispatches that do; see grid.comp")
	kib := fs.String("grid-kib", "0", "KiB that such a phase reads")
	fs.IntVar(&o.gridPhases, "grid-phases", 256, "how many there are")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 || o.count < 1 || *memory < 0 || *halves < 0 || o.ahead < 0 || o.positions < 1 || o.gridPhases < 2 {
		return nil, fmt.Errorf("want flags alone, -count of at least 1; found %q", fs.Args())
	}
	if !slices.Contains([]string{"", "apart", "within"}, o.rope) {
		return nil, fmt.Errorf("-rope: found %q, wanted apart or within", o.rope)
	}
	o.memory, o.halves = int64(*memory)<<20, int64(*halves)<<20
	if *enable != "" {
		o.enable = strings.Split(*enable, ",")
	}
	var errs [12]error
	o.kernels, errs[0] = list(*names, kernelName)
	o.types, errs[1] = list(*types, typeNamed)
	if *shapes != "" {
		o.shapes, errs[2] = list(*shapes, parseShape)
	}
	o.n, errs[3] = list(*n, number)
	o.rows, errs[4] = list(*rows, number)
	o.team, errs[5] = list(*team, number)
	o.unr, errs[6] = list(*unroll, number)
	o.lanes, errs[7] = list(*lanes, number)
	if *groups != "" {
		o.gridGroups, errs[8] = list(*groups, positive)
	}
	o.gridKiB, errs[9] = list(*kib, number)
	if *runs != "" {
		if n, err := fmt.Sscanf(*runs, "%dx%d", &o.run.Subgroups, &o.run.Stages); n != 2 {
			errs[11] = fmt.Errorf("-run: found %q, wanted one as 4x1: %w", *runs, err)
		}
	}
	o.splits = []kernels.CMTile{{}}
	if *splits != "" {
		o.splits, errs[10] = list(*splits, parseSplit)
	}
	return o, errors.Join(errs[:]...)
}

// The shapes of an 8B and a 70B model's layers, and of an 8B model's head.
const (
	gpuShapes = "8192x28672,4096x14336,4096x4096,1024x4096,128256x4096"
	cpuShapes = "1024x4096"
)

// forDevice sets what was left open.
func (o *options) forDevice(software bool) {
	shapes, memory, halves := gpuShapes, int64(1280<<20), int64(512<<20)
	if software {
		shapes, memory, halves = cpuShapes, 16<<20, 64<<20
	}
	if o.shapes == nil {
		o.shapes, _ = list(shapes, parseShape) // constants, and a test parses them
	}
	if o.memory == 0 {
		o.memory = memory
	}
	if o.halves == 0 {
		o.halves = halves
	}
	o.room = leastRoom
	for _, name := range o.kernels {
		for _, s := range o.shapes {
			for _, n := range o.n {
				if most := activations(kernelOps[name], s, n); most <= mostRoom {
					o.room = max(o.room, (most+1<<20-1)&^(1<<20-1))
				}
			}
		}
	}
}

// list parses words between commas.
func list[T any](s string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, w := range strings.Split(s, ",") {
		v, err := parse(w)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("found %q, wanted a number", s)
	}
	return n, nil
}

func positive(s string) (int, error) {
	n, err := number(s)
	if err == nil && n == 0 {
		err = fmt.Errorf("found 0, wanted 1 or more")
	}
	return n, err
}

func parseShape(s string) (shape, error) {
	m, k, ok := strings.Cut(s, "x")
	if ok {
		rows, err1 := strconv.Atoi(m)
		cols, err2 := strconv.Atoi(k)
		if err1 == nil && err2 == nil && rows > 0 && cols > 0 {
			return shape{rows, cols}, nil
		}
	}
	return shape{}, fmt.Errorf("shape: found %q, wanted one as 4096x14336", s)
}

// parseSplit reads what [kernels.CMTile.String] writes; "": the engine's choice.
func parseSplit(text string) (s kernels.CMTile, err error) {
	if text == "" {
		return s, nil
	}
	numbers, wide := strings.CutSuffix(text, "w")
	numbers, halves := strings.CutSuffix(numbers, "h")
	s.Halves, s.Wide = halves, wide
	words, to := strings.Split(numbers, "x"), []*uint32{&s.BM, &s.BN, &s.WM, &s.WN, &s.BK, &s.Stages}
	ok := len(words) == 4 || len(words) == 6
	for i := 0; ok && i < len(words); i++ {
		n, err := strconv.ParseUint(words[i], 10, 16)
		*to[i], ok = uint32(n), err == nil && n > 0
	}
	if !ok {
		return s, fmt.Errorf("-split: found %q, wanted one as 128x64x64x32 or 128x128x64x64x32x2hw", text)
	}
	return s, nil
}

func kernelName(s string) (string, error) {
	if _, ok := kernelOps[s]; !ok {
		return "", fmt.Errorf("kernel: found %q, wanted one of %s", s, strings.Join(kernelNames(), ", "))
	}
	return s, nil
}

// typeNamed finds a type of weights by its name in any case.
func typeNamed(s string) (gguf.Type, error) {
	for _, k := range shaders.Kernels() {
		if k.Typed && strings.EqualFold(k.Type.String(), s) {
			return k.Type, nil
		}
	}
	return 0, fmt.Errorf("type: no kernel takes %q", s)
}

// tiles are all combinations that were asked for.
func (o *options) tiles() []kernels.Tile {
	var ts []kernels.Tile
	for _, r := range o.rows {
		for _, t := range o.team {
			for _, u := range o.unr {
				for _, l := range o.lanes {
					ts = append(ts, kernels.Tile{Rows: uint32(r), Team: uint32(t), Unroll: uint32(u), Lanes: uint32(l)})
				}
			}
		}
	}
	return ts
}
