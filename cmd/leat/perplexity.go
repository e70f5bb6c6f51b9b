package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"leat/engine"
	"leat/engine/sample"
	"leat/engine/token"
)

func init() { commands = append(commands, newPerplexityCmd) }

type perplexityFlags struct {
	modelFlags
	text   string
	file   string
	window int
	limit  int
	json   bool
}

func newPerplexityCmd(a *app) *cobra.Command {
	f := &perplexityFlags{}
	cmd := &cobra.Command{
		Use:   "perplexity MODEL -f TEXT",
		Short: "Measure how well a model predicts a text",
		Long: `Measure how well a model predicts a text: the exponential of the mean negative log
likelihood per token. The text is cut into windows of --window tokens, each read from
an empty context; the second half of each window counts, as its tokens see enough
before them.`,
		Example: `  leat perplexity model.gguf -f wiki.test.txt
  leat perplexity demo -f book.txt --window 256 --limit 20 --json`,
		Args: wants("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a, args[0]) },
	}
	f.register(cmd.Flags())
	f.registerRouting(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVarP(&f.text, "prompt", "p", "", "the text itself")
	fs.StringVarP(&f.file, "file", "f", "", "file with the text; - is stdin")
	fs.IntVar(&f.window, "window", 0, "tokens of a window (default 512, or what --ctx allows)")
	fs.IntVar(&f.limit, "limit", 0, "windows to measure at most (default: all)")
	fs.BoolVar(&f.json, "json", false, "print as JSON")
	return cmd
}

// perplexityResult is what --json prints.
type perplexityResult struct {
	Perplexity float64 `json:"perplexity"`
	StdErr     float64 `json:"standard_error"`
	Nats       float64 `json:"nats_per_token"`
	Tokens     int     `json:"tokens_counted"`
	Windows    int     `json:"windows"`
	Window     int     `json:"window"`
	Seconds    float64 `json:"seconds"`
}

const defaultWindow = 512

func (f *perplexityFlags) run(ctx context.Context, a *app, arg string) error {
	if err := modelExists(arg); err != nil {
		return err
	}
	text, err := readText(a, f.text, f.file)
	if err != nil {
		return err
	}
	if err := f.fitWindow(); err != nil {
		return err
	}
	if err := f.asks(a, arg, []string{f.file}); err != nil {
		return err
	}
	m, err := f.load(ctx, a, arg)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := tokenizerNeeded(m); err != nil {
		return err
	}
	ids := m.Tokenizer().Encode(text, false, false)
	windows := len(ids) / f.window
	if f.limit > 0 {
		windows = min(windows, f.limit)
	}
	if windows == 0 {
		return usageErrorf("the text has %d tokens, less than one window of %d", len(ids), f.window)
	}
	begin := a.now()
	sum, err := f.losses(ctx, a, m, ids[:windows*f.window])
	if err != nil {
		return err
	}
	mean, stderr := sum.mean()
	r := perplexityResult{Perplexity: math.Exp(mean), StdErr: math.Exp(mean) * stderr, Nats: mean, Tokens: sum.n, Windows: windows, Window: f.window, Seconds: time.Since(begin).Seconds()}
	if f.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "perplexity %.4f ± %.4f (%.4f nats/token, %d tokens in %d %s of %d)\n", r.Perplexity, r.StdErr, r.Nats, r.Tokens, windows, plural(windows, "window"), f.window)
	return nil
}

// fitWindow sets window and context where they were not given, and holds them against each other.
func (f *perplexityFlags) fitWindow() error {
	if f.window == 0 {
		if f.window = defaultWindow; f.ctx > 0 {
			f.window = min(f.window, f.ctx)
		}
	}
	if f.window < 4 {
		return usageErrorf("--window: found %d, wanted at least 4", f.window)
	}
	if f.ctx == 0 {
		f.ctx = f.window
	}
	if f.ctx < f.window {
		return usageErrorf("--window %d does not fit into --ctx %d", f.window, f.ctx)
	}
	return nil
}

// losses sums up the losses of ids, whole windows, and says now and then how far it is.
func (f *perplexityFlags) losses(ctx context.Context, a *app, m *engine.Model, ids []token.ID) (sum lossSum, err error) {
	s, err := m.NewSession()
	if err != nil {
		return sum, err
	}
	defer s.Close()
	begin := a.now()
	told := begin
	windows := len(ids) / f.window
	for w := range windows {
		window := slices.Clone(ids[w*f.window : (w+1)*f.window])
		if bos, ok := m.Tokenizer().BOS(); ok && m.Tokenizer().AddsBOS() {
			window[0] = bos // as in training, each window begins a text
		}
		if err := s.Truncate(0); err != nil {
			return sum, err
		}
		losses, err := windowLosses(ctx, s, window)
		if err != nil {
			return sum, err
		}
		for _, l := range losses {
			sum.add(l)
		}
		if now := a.now(); now.Sub(told) > 5*time.Second {
			told = now
			left := time.Since(begin) / time.Duration(w+1) * time.Duration(windows-w-1)
			mean, _ := sum.mean()
			fmt.Fprintf(a.err, "leat: window %d of %d, perplexity so far %.4f, %s left\n", w+1, windows, math.Exp(mean), left.Round(time.Second))
		}
	}
	return sum, nil
}

// lossSum sums up losses of tokens, in nats.
type lossSum struct {
	sum, squares float64
	n            int
}

func (s *lossSum) add(loss float64) { s.sum, s.squares, s.n = s.sum+loss, s.squares+loss*loss, s.n+1 }

// mean is the mean and its standard error.
func (s *lossSum) mean() (mean, stderr float64) {
	mean = s.sum / float64(s.n)
	return mean, math.Sqrt(max(0, s.squares/float64(s.n)-mean*mean) / float64(s.n))
}

// windowLosses returns the negative log likelihood of each token in the second half
// of a window, in nats. With a large vocabulary a row takes a core longer than the GPU, so every core takes rows.
func windowLosses(ctx context.Context, s *engine.Session, window []token.ID) ([]float64, error) {
	half := len(window) / 2
	losses := make([]float64, len(window)-half)
	var rows errgroup.Group
	rows.SetLimit(runtime.GOMAXPROCS(0))
	i := 0
	for logits, err := range s.Logits(ctx, window[:len(window)-1]) {
		if err != nil {
			_ = rows.Wait() // rows have no errors
			return nil, err
		}
		if i++; i >= half {
			row, id, loss := slices.Clone(logits), window[i], &losses[i-half]
			rows.Go(func() error {
				of, _ := sample.Logprobs(row, id, 0)
				*loss = -of
				return nil
			})
		}
	}
	return losses, rows.Wait()
}
