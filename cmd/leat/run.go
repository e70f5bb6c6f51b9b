package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"leat/engine"
	"leat/engine/chat"
	"leat/engine/sample"
	"leat/engine/token"
)

func init() { commands = append(commands, newRunCmd) }

// runFlags are the flags of leat run.
type runFlags struct {
	modelFlags
	prompt    string
	file      string
	n         int
	temp      float64
	seed      uint64
	raw       bool
	stop      []string
	ignoreEOG bool
	stats     bool
	json      bool
}

func newRunCmd(a *app) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run MODEL (-p TEXT | -f FILE)",
		Short: "Complete a prompt",
		Long: `Complete a prompt. The completion alone goes to stdout.

The prompt is wrapped in the model's chat template, where the file has one; --raw
gives it to the model as it is. Control tokens in the prompt are plain text.`,
		Example: `  leat run demo -p "Tell me a story about a dog and a ball."
  leat run qwen3-30b.gguf -p "Why is the sky blue?" -n 200 --vram 6GiB --stats
  leat run llama-pack/ -f prompt.txt --raw --temp 0`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a, args[0]) },
	}
	f.register(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.prompt, "prompt", "p", "", "the prompt")
	fs.StringVarP(&f.file, "file", "f", "", "read the prompt from a file; - is stdin")
	fs.IntVarP(&f.n, "tokens", "n", 0, "tokens to generate at most (default: until the model stops or the context is full)")
	fs.Float64Var(&f.temp, "temp", 0.8, "sampling temperature; 0 takes the most likely token")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of the sampling; 0 takes one from the clock")
	fs.BoolVar(&f.raw, "raw", false, "no chat template")
	fs.StringArrayVar(&f.stop, "stop", nil, "text that ends the completion; may be given several times")
	fs.BoolVar(&f.ignoreEOG, "ignore-eog", false, "go on past the model's own stop")
	fs.BoolVar(&f.stats, "stats", false, "print speeds and memory to stderr at the end")
	fs.BoolVar(&f.json, "json", false, "print one JSON object at the end instead of streaming text")
	return cmd
}

// runStats is what --stats and --json report.
type runStats struct {
	Device        string  `json:"device"`
	PromptTokens  int     `json:"prompt_tokens"`
	Tokens        int     `json:"tokens"`
	LoadSeconds   float64 `json:"load_seconds"`
	TTFTSeconds   float64 `json:"ttft_seconds"`
	PromptPerSec  float64 `json:"prompt_tokens_per_second"`
	DecodePerSec  float64 `json:"decode_tokens_per_second"`
	VRAMBytes     int64   `json:"vram_bytes"`
	ResidentUnits int     `json:"resident_units"`
	StreamedUnits int     `json:"streamed_units"`
	StreamedBytes int64   `json:"streamed_bytes_per_token"`
}

type runResult struct {
	Text  string     `json:"text"`
	IDs   []token.ID `json:"ids"`
	Stop  string     `json:"stop"`
	Stats runStats   `json:"stats"`
}

func (f *runFlags) run(ctx context.Context, a *app, arg string) error {
	prompt, err := readText(a, f.prompt, f.file)
	if err != nil {
		return err
	}
	begin := time.Now()
	m, err := f.load(ctx, a, arg)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := tokenizerNeeded(m); err != nil {
		return err
	}
	loaded := time.Since(begin)
	ids, err := f.encode(ctx, m, prompt)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return usageErrorf("the prompt is empty, and this model's file adds no token to it")
	}
	res, err := f.generate(ctx, a, m, ids)
	if err != nil {
		return err
	}
	res.Stats.LoadSeconds = loaded.Seconds()
	if f.json {
		return a.printJSON(res)
	}
	if f.stats {
		printStats(a.err, &res.Stats)
	}
	return nil
}

func (f *runFlags) encode(ctx context.Context, m *engine.Model, prompt string) ([]token.ID, error) {
	if f.raw || !m.HasChatTemplate() {
		return m.Encode(prompt, true), nil
	}
	ids, err := m.EncodeChat(ctx, []chat.Message{{Role: "user", Content: prompt}})
	return ids, withHint(err, "--raw gives the prompt to the model without its chat template")
}

func (f *runFlags) generate(ctx context.Context, a *app, m *engine.Model, ids []token.ID) (*runResult, error) {
	s, err := m.NewSession()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	seed := f.seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	p := engine.Params{Params: sample.Params{Temperature: f.temp, Seed: seed}, MaxTokens: f.n, Stop: f.stop, IgnoreEOG: f.ignoreEOG}
	res := &runResult{IDs: []token.ID{}}
	var text strings.Builder
	begin, first := time.Now(), time.Time{}
	for t, err := range s.Generate(ctx, ids, p) {
		if err != nil {
			return nil, err
		}
		if first.IsZero() {
			first = time.Now()
		}
		res.IDs, res.Stop = append(res.IDs, t.ID), t.Stop.String()
		text.WriteString(t.Text)
		if !f.json {
			if _, err := io.WriteString(a.out, t.Text); err != nil {
				return nil, fmt.Errorf("write the completion: %w", err)
			}
		}
	}
	res.Text = text.String()
	if !f.json && !strings.HasSuffix(res.Text, "\n") {
		fmt.Fprintln(a.out)
	}
	res.Stats = statsOf(m, len(ids), len(res.IDs), first.Sub(begin), time.Since(first))
	return res, nil
}

func statsOf(m *engine.Model, prompt, tokens int, ttft, decode time.Duration) runStats {
	p := m.Plan()
	_, peak := m.Memory()
	st := runStats{Device: m.DeviceName(), PromptTokens: prompt, Tokens: tokens, TTFTSeconds: ttft.Seconds(), VRAMBytes: peak, StreamedBytes: p.StreamedBytes}
	st.PromptPerSec = float64(prompt) / ttft.Seconds()
	if tokens > 1 {
		st.DecodePerSec = float64(tokens-1) / decode.Seconds()
	}
	for i := range p.Units {
		if p.Units[i].Resident() {
			st.ResidentUnits++
		} else {
			st.StreamedUnits++
		}
	}
	return st
}

func printStats(w io.Writer, s *runStats) {
	fmt.Fprintf(w, "leat: %s: %d of %d units resident, %s VRAM, %s streamed per token\n", s.Device, s.ResidentUnits, s.ResidentUnits+s.StreamedUnits, formatSize(s.VRAMBytes), formatSize(s.StreamedBytes))
	fmt.Fprintf(w, "leat: load %.2f s, TTFT %.0f ms, prompt %d tokens at %.1f tok/s, decode %d tokens at %.2f tok/s\n", s.LoadSeconds, 1000*s.TTFTSeconds, s.PromptTokens, s.PromptPerSec, s.Tokens, s.DecodePerSec)
}
