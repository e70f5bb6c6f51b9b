package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"leat/internal/expertcache"
)

const usage = `Usage: cachesim [flags] [TRACE ...]

Replays routing traces (leat run --trace-experts FILE writes them), one behind the other
or, with -turns 100, in turns of 100 steps, through caches of experts: for each size and policy the part of the experts asked for that
was there. "optimum" evicts what is used again last, which no program can know. The rates
count from the second half of the steps on, when the caches are warm; -all counts from the
first, and -cold 64 the first 64 alone. -svg draws the rates, -uses how often each expert
was used.

Without a trace the routing is synthetic: see -skew, -topic.

Example: go run ./tools/cachesim -sizes 10%,25%,50% -policies lru,weighted:64,adaptive stories.routing
`

type options struct {
	sizes, policies string
	json, csv, all  bool
	layers, experts int
	used, steps     int
	skew            float64
	topic           int
	share           float64
	seed            uint64
	cold, turns     int
	svg, uses       string
	title           string
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "cachesim: error:", err)
		os.Exit(1)
	}
}

func run(args []string, out, errs io.Writer) error {
	var o options
	fs := flag.NewFlagSet("cachesim", flag.ContinueOnError)
	fs.SetOutput(errs)
	fs.Usage = func() { fmt.Fprint(errs, usage+"\n"); fs.PrintDefaults() }
	fs.StringVar(&o.sizes, "sizes", "5%,10%,20%,30%,40%,50%,60%,80%", "slots, as numbers or in parts of all experts")
	fs.StringVar(&o.policies, "policies", "lru,stale,weighted:8,weighted:32,weighted:128,weighted:512,adaptive", "of "+strings.Join(expertcache.Policies(), ", "))
	fs.BoolVar(&o.json, "json", false, "print as JSON")
	fs.BoolVar(&o.csv, "csv", false, "print as CSV")
	fs.BoolVar(&o.all, "all", false, "count the first half, too")
	fs.IntVar(&o.cold, "cold", 0, "count so many steps from the first on, and no more; 0: the second half")
	fs.IntVar(&o.turns, "turns", 0, "traces take turns of so many steps, as texts on different topics do; 0: one behind the other")
	fs.StringVar(&o.svg, "svg", "", "draw the rates over the sizes into an SVG file")
	fs.StringVar(&o.uses, "uses", "", "draw how often each expert was used into an SVG file")
	fs.StringVar(&o.title, "title", "", "of what is drawn (default: the model)")
	fs.IntVar(&o.layers, "layers", 48, "synthetic: layers")
	fs.IntVar(&o.experts, "experts", 128, "synthetic: experts of a layer")
	fs.IntVar(&o.used, "used", 8, "synthetic: experts that a token uses in a layer")
	fs.IntVar(&o.steps, "steps", 1000, "synthetic: tokens")
	fs.Float64Var(&o.skew, "skew", 0.8, "synthetic: 0 uses all experts alike, 1 is Zipf's law")
	fs.IntVar(&o.topic, "topic", 0, "synthetic: tokens until a part of the experts changes rank; 0: never")
	fs.Float64Var(&o.share, "share", 0.5, "synthetic: that part")
	fs.Uint64Var(&o.seed, "seed", 1, "synthetic: another one gives another routing")
	if err := fs.Parse(args); err != nil {
		return err
	}
	t, err := o.routing(fs.Args())
	if err != nil {
		return err
	}
	if o.cold < 0 || o.turns < 0 || o.cold > 0 && o.all {
		return fmt.Errorf("-cold, -turns: found %d and %d, wanted 0 or more, and -cold without -all", o.cold, o.turns)
	}
	if o.cold > 0 {
		t.Steps = t.Steps[:min(o.cold, len(t.Steps))]
	}
	table, err := o.simulate(t)
	if err == nil {
		err = o.draw(t, table)
	}
	if err != nil {
		return err
	}
	switch {
	case o.json:
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(table)
	case o.csv:
		return table.csv(out)
	}
	return table.print(out)
}

// routing reads the traces, which must be of one shape, or makes one.
func (o *options) routing(paths []string) (*expertcache.Routing, error) {
	if len(paths) == 0 {
		if o.layers < 1 || o.used < 1 || o.used > o.experts || o.experts > 4096 || o.layers > 4096 || o.steps < 2 || o.steps > 1<<20 {
			return nil, fmt.Errorf("synthetic routing: found %d layers of %d experts, %d used, %d steps: wanted at least 1, 1, 1 of them and 2, and at most 4096, 4096 and %d", o.layers, o.experts, o.used, o.steps, 1<<20)
		}
		return expertcache.Synthetic{Layers: o.layers, Experts: o.experts, Used: o.used, Skew: o.skew, TopicSteps: o.topic, TopicShare: o.share, Seed: o.seed}.Routing(0, o.steps), nil
	}
	var all *expertcache.Routing
	var each [][]expertcache.Step
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		t, err := expertcache.ReadRouting(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if all == nil {
			all = t
		}
		if t.Layers != all.Layers || t.Experts != all.Experts || t.Used != all.Used {
			return nil, fmt.Errorf("%s: found %d layers of %d experts, %d used, wanted %d, %d, %d as in %s", path, t.Layers, t.Experts, t.Used, all.Layers, all.Experts, all.Used, paths[0])
		}
		each = append(each, t.Steps)
	}
	all.Steps = inTurns(each, o.turns)
	if len(all.Steps) < 2 {
		return nil, fmt.Errorf("%s: found %d steps, wanted 2 or more", strings.Join(paths, ", "), len(all.Steps))
	}
	return all, nil
}

// inTurns takes so many steps of each list, and again until all are taken; 0: lists are whole.
func inTurns(lists [][]expertcache.Step, steps int) (all []expertcache.Step) {
	for left := true; left; {
		left = false
		for i, l := range lists {
			n := len(l)
			if steps > 0 {
				n = min(n, steps)
			}
			all, lists[i] = append(all, l[:n]...), l[n:]
			left = left || len(lists[i]) > 0
		}
	}
	return all
}

// slots reads the sizes.
func (o *options) slots(all int) (list []int, err error) {
	for _, s := range strings.Split(o.sizes, ",") {
		number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
		x, err := strconv.ParseFloat(number, 64)
		if percent {
			x *= float64(all) / 100
		}
		if err != nil || !(x >= 1) || x > float64(all) {
			return nil, fmt.Errorf("-sizes: found %q, wanted 1 to %d slots or their part in %%", s, all)
		}
		list = append(list, int(x))
	}
	return list, nil
}

// table is what comes out.
type table struct {
	expertcache.Header
	Steps int   `json:"steps"`
	Rows  []row `json:"rows"`
	all   bool
}

type row struct {
	Slots   int                  `json:"slots"`
	Share   float64              `json:"share_of_experts"`
	Results []expertcache.Result `json:"results"` // the optimum last
}

func (o *options) simulate(t *expertcache.Routing) (*table, error) {
	all := t.Layers * t.Experts
	sizes, err := o.slots(all)
	if err != nil {
		return nil, err
	}
	out := &table{Header: t.Header, Steps: len(t.Steps), all: o.all || o.cold > 0}
	for _, slots := range sizes {
		r := row{Slots: slots, Share: float64(slots) / float64(all)}
		for _, name := range strings.Split(o.policies, ",") {
			p, err := expertcache.ByName(strings.TrimSpace(name))
			if err != nil {
				return nil, fmt.Errorf("-policies: %w", err)
			}
			one, err := expertcache.Replay(t, slots, p)
			if err != nil {
				return nil, err
			}
			r.Results = append(r.Results, one)
		}
		best, err := expertcache.Optimum(t, slots)
		if err != nil {
			return nil, err
		}
		r.Results = append(r.Results, best)
		out.Rows = append(out.Rows, r)
	}
	return out, nil
}

func (t *table) rate(r *expertcache.Result) float64 {
	if t.all {
		return r.HitRate()
	}
	return r.Late.HitRate()
}

func (t *table) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d layers of %d experts, %d used by a token; %d steps\n\n%7s %5s", t.Model, t.Layers, t.Experts, t.Used, t.Steps, "slots", "")
	for i := range t.Rows[0].Results {
		fmt.Fprintf(w, " %13s", t.Rows[0].Results[i].Policy)
	}
	fmt.Fprintln(w)
	for _, r := range t.Rows {
		fmt.Fprintf(w, "%7d %4.0f%%", r.Slots, 100*r.Share)
		for i := range r.Results {
			fmt.Fprintf(w, " %12.1f%%", 100*t.rate(&r.Results[i]))
		}
		fmt.Fprintln(w)
	}
	return nil
}

func (t *table) csv(w io.Writer) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"slots", "share_of_experts", "policy", "hit_rate", "decode_hit_rate", "prefill_hit_rate", "evictions"})
	for _, r := range t.Rows {
		for i := range r.Results {
			one := &r.Results[i]
			number := func(x float64) string { return strconv.FormatFloat(x, 'f', 6, 64) }
			_ = c.Write([]string{strconv.Itoa(r.Slots), number(r.Share), one.Policy, number(t.rate(one)), number(one.Decode.HitRate()), number(one.Prefill.HitRate()), strconv.FormatInt(one.Evictions, 10)})
		}
	}
	c.Flush()
	return c.Error()
}
