package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"leat/engine"
	"leat/engine/chat"
	"leat/engine/token"
	"leat/internal/bench"
	"leat/internal/predict"
)

// runStats is what --stats, /stats and --json report of one answer.
type runStats struct {
	Device        string  `json:"device"`
	PromptTokens  int     `json:"prompt_tokens"` // all of them, reused or not
	ReusedTokens  int     `json:"reused_tokens"` // of those, still in the session
	Tokens        int     `json:"tokens"`
	LoadSeconds   float64 `json:"load_seconds"`
	TTFTSeconds   float64 `json:"ttft_seconds"`
	PromptPerSec  float64 `json:"prompt_tokens_per_second"`
	DecodePerSec  float64 `json:"decode_tokens_per_second"`
	SteadyPerSec  float64 `json:"steady_tokens_per_second"` // from the second token on: the first step of one row may build kernels; 0: fewer than three tokens
	VRAMBytes     int64   `json:"vram_bytes"`
	ResidentUnits int     `json:"resident_units"`
	StreamedUnits int     `json:"streamed_units"`
	StreamedBytes int64   `json:"streamed_bytes_per_token"`

	Pace      paceStats           `json:"pace"`
	Shrinks   []string            `json:"vram_given_back,omitempty"` // a line each, during this answer
	Busy      *busyStats          `json:"busy,omitempty"`            // while decoding
	Prefill   *bench.Experts      `json:"prompt_experts,omitempty"`  // that share slots of VRAM, while reading the prompt
	Predicted *predict.Prediction `json:"predicted,omitempty"`       // by what this machine was measured to do
}

// answer is one completion and what it took.
type answer struct {
	Text     string     `json:"text"`
	Thinking string     `json:"thinking,omitempty"`
	IDs      []token.ID `json:"ids"`
	Stop     string     `json:"stop"`
	Seed     uint64     `json:"seed"`
	Logprobs []logprobs `json:"logprobs,omitempty"` // one for each id
	Stats    runStats   `json:"stats"`
}

// cut reports whether the answer ended because it had as many tokens as it may have.
func (a *answer) cut() bool { return a.Stop == engine.StopLength.String() }

// length is where an answer that was cut ends.
func (a *answer) length() string {
	text := fmt.Sprintf("%d %s", a.Stats.Tokens, plural(a.Stats.Tokens, "token"))
	if a.Thinking != "" && a.Text == "" {
		text += " of thinking, before the answer"
	}
	return text
}

// logprobs are what the model alone thought of a token, and of the likeliest ones.
type logprobs struct {
	tokenLogprob
	Top []tokenLogprob `json:"top"`
}

type tokenLogprob struct {
	ID      token.ID `json:"id"`
	Text    string   `json:"text"`    // the token's own: a part of a rune shows as U+FFFD
	Logprob *float64 `json:"logprob"` // null for a token that can't come: JSON has no -inf
}

func logprobOf(m *engine.Model, id token.ID, logprob float64) tokenLogprob {
	t := tokenLogprob{ID: id, Text: strings.ToValidUTF8(string(m.Tokenizer().Piece(id)), "\uFFFD")}
	if !math.IsInf(logprob, 0) {
		t.Logprob = &logprob
	}
	return t
}

func logprobsOf(m *engine.Model, t *engine.Token) logprobs {
	l := logprobs{logprobOf(m, t.ID, t.Logprob), make([]tokenLogprob, len(t.Top))}
	for i, top := range t.Top {
		l.Top[i] = logprobOf(m, top.ID, top.Logprob)
	}
	return l
}

// request is what one answer is made from.
type request struct {
	ids   []token.ID // the whole prompt; what the session has of it is reused
	split *chat.Splitter
	p     engine.Params
	show  func(thinking, text string) error // called for each piece as it comes
}

// generate answers. With an error, the answer holds what came before it.
func generate(ctx context.Context, m *engine.Model, s *engine.Session, q request) (*answer, error) {
	a := &answer{IDs: []token.ID{}, Seed: q.p.Seed}
	rest, err := s.Reuse(q.ids)
	if err != nil {
		return a, err
	}
	begin, first, second := time.Now(), time.Time{}, time.Time{}
	before := m.Stats()
	var decode engine.Stats // as decoding begins
	for t, genErr := range s.Generate(ctx, rest, q.p) {
		if genErr != nil {
			err = genErr
			break
		}
		if first.IsZero() {
			first, decode = time.Now(), m.Stats()
		} else if second.IsZero() {
			second = time.Now()
		}
		a.IDs, a.Stop = append(a.IDs, t.ID), t.Stop.String()
		if q.p.Logprobs != 0 {
			a.Logprobs = append(a.Logprobs, logprobsOf(m, &t))
		}
		if err = q.show(q.split.Push(t.Text, t.Control)); err != nil {
			break
		}
	}
	if flushErr := q.show(q.split.Flush()); err == nil {
		err = flushErr
	}
	a.Thinking, a.Text = q.split.Reply()
	a.Stats = statsOf(m, len(q.ids), len(rest), len(a.IDs), begin, first)
	if n := len(a.IDs); n > 2 {
		a.Stats.SteadyPerSec = float64(n-2) / time.Since(second).Seconds()
	}
	for _, s := range m.Stats().Shrinks[len(before.Shrinks):] {
		a.Stats.Shrinks = append(a.Stats.Shrinks, s.String())
	}
	if len(a.IDs) > 0 {
		a.Stats.Prefill = bench.ExpertsOf(&before, &decode)
	}
	if len(a.IDs) > 1 {
		a.Stats.Busy = busyOf(decode, m.Stats(), time.Since(first))
	}
	return a, err
}

func statsOf(m *engine.Model, prompt, prefilled, tokens int, begin, first time.Time) runStats {
	p, now := m.Plan(), m.Stats()
	st := runStats{
		Device: m.DeviceName(), PromptTokens: prompt, ReusedTokens: prompt - prefilled, Tokens: tokens,
		VRAMBytes: now.VRAMPeak, StreamedBytes: p.StreamedBytes, Pace: paceStatsOf(now.Pace),
	}
	if tokens > 0 {
		st.TTFTSeconds = first.Sub(begin).Seconds()
		st.PromptPerSec = float64(prefilled) / st.TTFTSeconds
	}
	if tokens > 1 {
		st.DecodePerSec = float64(tokens-1) / time.Since(first).Seconds()
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
	fmt.Fprintf(w, "leat: load %.2f s, %s\n", s.LoadSeconds, s.speeds())
	if s.Busy != nil {
		fmt.Fprintf(w, "leat: %s\n", s.Busy)
		if x := s.Busy.Experts; x != nil {
			fmt.Fprintf(w, "leat: %s\n", expertsTook(x))
		}
	}
	if s.Prefill != nil {
		fmt.Fprintf(w, "leat: prompt: %s; %s\n", expertsDistinct(s.Prefill), expertsFound(s.Prefill))
	}
	if s.Pace.By != "off" {
		fmt.Fprintf(w, "leat: pace: %s\n", &s.Pace)
	}
}

// prediction is one line on what was predicted and reached, "" where nothing was.
func (s *runStats) prediction() string {
	p := s.Predicted
	if p == nil || s.DecodePerSec == 0 {
		return ""
	}
	at := ""
	if s.Busy != nil && s.Busy.Experts != nil {
		at = fmt.Sprintf(" with %.0f %% of the experts in VRAM", 100*s.Busy.Experts.HitRate)
	}
	reached, from := s.DecodePerSec, ""
	if s.SteadyPerSec > 0 {
		reached, from = s.SteadyPerSec, " from the second token on"
	}
	return fmt.Sprintf("predicted %s%s, reached %s tok/s%s (%s); the %s is the bottleneck, %s tok/s its bound",
		formatSpeed(p.DecodePerSec), at, formatSpeed(reached), from, formatChange(reached/p.DecodePerSec-1), p.DecodeBottleneck, formatSpeed(p.BoundPerSec))
}

// predict adds what the answer should have taken.
func (s *runStats) predict(p *predictor, of engine.Details) {
	if p == nil {
		return
	}
	var found *predict.ExpertHits // as the answer's tokens did: a plan can't know it
	if s.Busy != nil && s.Busy.Experts != nil {
		found = s.Busy.Experts.ExpertHits()
	}
	r := predict.PlanWithHits(&of.Plan, p.speeds, &of.Hyper, s.PromptTokens+s.Tokens/2, s.PromptTokens-s.ReusedTokens, found, nil)
	s.Predicted = &r
}

// atSpeed is a speed in a sentence; nothing where none was measured.
func atSpeed(perSec float64) string {
	if perSec <= 0 {
		return ""
	}
	return " at " + speedText(perSec)
}

// speeds is one line on an answer.
func (s *runStats) speeds() string {
	prompt := fmt.Sprintf("prompt %d %s", s.PromptTokens, plural(s.PromptTokens, "token"))
	if s.ReusedTokens > 0 {
		prompt += fmt.Sprintf(" (%d reused, %d prefilled)", s.ReusedTokens, s.PromptTokens-s.ReusedTokens)
	}
	return fmt.Sprintf("TTFT %s, %s%s, decode %d %s%s", seconds(s.TTFTSeconds), prompt, atSpeed(s.PromptPerSec), s.Tokens, plural(s.Tokens, "token"), atSpeed(s.DecodePerSec))
}

// encode is the conversation as the model is given it.
func encode(ctx context.Context, m *engine.Model, c *conversation, s *settings) ([]token.ID, *chat.Splitter, error) {
	if c.Raw {
		ids := m.Encode(c.text(), true)
		if len(ids) == 0 {
			return nil, nil, usageErrorf("the prompt is empty, and this model's file adds no token to it")
		}
		return ids, new(chat.Splitter), nil // there is no thinking without a template
	}
	text, err := m.RenderChat(ctx, c.prompt(), chat.RenderOptions{Args: s.TemplateArgs, Now: c.now})
	if err != nil {
		return nil, nil, withHint(err, "--raw gives the prompt to the model without its chat template")
	}
	t, err := m.ChatTemplate()
	if err != nil {
		return nil, nil, err
	}
	return m.Tokenizer().EncodeTemplate(text), t.NewSplitter(text), nil
}

// fit is encode, with the oldest turns dropped from what the model is given where the
// context has no room left for an answer. More go than must: each time it happens,
// all that is left has to be prefilled again.
func fit(ctx context.Context, m *engine.Model, room int, c *conversation, s *settings) (ids []token.ID, split *chat.Splitter, dropped int, err error) {
	for {
		ids, split, err = encode(ctx, m, c, s)
		if err != nil {
			return nil, nil, dropped, err
		}
		full := len(ids)+answerRoom(room) > room || dropped > 0 && len(ids) > room/2
		if !full {
			return ids, split, dropped, nil
		}
		n := c.dropOldest()
		if dropped += n; n == 0 {
			break
		}
	}
	if len(ids) >= room {
		return nil, nil, dropped, &contextError{len(ids), room}
	}
	return ids, split, dropped, nil
}

// answerRoom is how many tokens of a context an answer should find free.
func answerRoom(room int) int { return min(room/8, 512) + 1 }

// contextError: one prompt is longer than the whole context.
type contextError struct{ tokens, room int }

func (e *contextError) Error() string {
	return fmt.Sprintf("%v: the prompt alone has %d tokens, and the context holds %d", engine.ErrContextFull, e.tokens, e.room)
}
func (e *contextError) Unwrap() error { return engine.ErrContextFull }
func (e *contextError) Hint() string  { return contextHint }

const contextHint = "--ctx N makes room for N tokens, as far as memory goes; or shorten the prompt"

// hintContext adds the hint to an answer that filled the context.
func hintContext(err error) error {
	var hinted interface{ Hint() string }
	if errors.Is(err, engine.ErrContextFull) && !errors.As(err, &hinted) {
		return withHint(err, "%s", contextHint)
	}
	return err
}
