package main

import (
	"context"
	"fmt"
	"strings"

	"leat/internal/plan"
)

// topics are what /show knows; their names complete.
var topics = []struct {
	name string
	show func(*repl) error
}{
	{"settings", (*repl).showSettings},
	{"model", (*repl).showModel},
	{"plan", (*repl).showPlan},
	{"system", (*repl).showSystem},
	{"messages", (*repl).showMessages},
}

func (r *repl) cmdShow(_ context.Context, arg string) error {
	if arg == "" {
		arg = "settings"
	}
	var names []string
	for _, t := range topics {
		if t.name == arg {
			return t.show(r)
		}
		names = append(names, t.name)
	}
	return &usageError{text: fmt.Sprintf("/show knows no %q", arg), hint: "it knows " + strings.Join(names, ", ")}
}

func (r *repl) showSettings() error {
	values, start := r.set.values(), r.start.values()
	for _, row := range settingTable {
		value := r.effective(&row)
		if values[row.name] != start[row.name] {
			value += "  (was " + orNone(start[row.name]) + ")"
		}
		fmt.Fprintf(r.a.out, "  %-21s %s\n", row.name, value)
	}
	return nil
}

// effective is a setting's value, and what it amounts to where the number alone doesn't
// say it.
func (r *repl) effective(row *setting) string {
	value := row.value(&r.set).String()
	means := row.zero
	if row.name == "seed" && r.last != nil {
		means = fmt.Sprintf("%s; the last answer had %d", means, r.last.Seed)
	}
	if means == "" || value != "" && value != "0" && !(value == "-1" && means == "all") {
		return orNone(value)
	}
	if value == "" {
		return means
	}
	return fmt.Sprintf("%s (%s)", value, means)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func (r *repl) showModel() error {
	f, loaded := r.model.facts()
	template := "its own"
	if !f.hasTemplate {
		template = "none"
	} else if r.conv.Raw {
		template = "its own, not used (--raw)"
	}
	state := "loaded"
	if !loaded {
		state = fmt.Sprintf("freed after %s without a question; the next one loads it again", r.model.idle)
	}
	r.rows([][2]string{
		{"model", r.name}, {"architecture", f.arch}, {"device", f.device}, {"state", state},
		{"context", fmt.Sprintf("%d tokens (trained for %d)", f.cap, f.trained)}, {"chat template", template},
	})
	return nil
}

func (r *repl) showPlan() error {
	f, _ := r.model.facts()
	p := f.plan
	var units, bytes [plan.Cached + 1]int64
	for i := range p.Units {
		units[p.Units[i].Tier]++
		bytes[p.Units[i].Tier] += p.Units[i].Bytes
	}
	rows := [][2]string{}
	for tier, n := range units {
		if plan.Tier(tier) == plan.Cached && n == 0 {
			continue
		}
		rows = append(rows, [2]string{fmt.Sprintf("units in %s", plan.Tier(tier)), fmt.Sprintf("%d of %d, %s", n, len(p.Units), formatSize(bytes[tier]))})
	}
	if x := expertsOf(p.Experts); x != nil {
		rows = append(rows, [2]string{"experts", x.String()})
	}
	rows = append(rows,
		[2]string{"KV cache", fmt.Sprintf("%d tokens, %s", p.ContextLength, formatSize(int64(p.KV.Pages)*p.KV.PageBytes))},
		[2]string{"VRAM", fmt.Sprintf("%s of %s allowed", formatSize(p.DeviceBytes), formatSize(p.DeviceBudget))},
		[2]string{"RAM", formatSize(p.HostBytes)},
		[2]string{"streamed", fmt.Sprintf("%s per token, %s of it from disk", formatSize(p.StreamedBytes), formatSize(p.DiskBytes))},
		[2]string{"prefill", fmt.Sprintf("%d tokens a step at most", p.Chunk)},
	)
	r.rows(rows)
	return nil
}

func (r *repl) showSystem() error {
	fmt.Fprintln(r.a.out, orNone(printable(r.conv.System)))
	return nil
}

func (r *repl) showMessages() error {
	for i, m := range r.conv.Messages {
		if i == r.conv.Dropped && i > 0 {
			r.note("the model isn't given what stands above")
		}
		r.a.printText(m.Role + ": " + strings.TrimRight(m.Content, "\n"))
	}
	if len(r.conv.Messages) == 0 {
		r.note("nothing was said yet")
	}
	return nil
}

func (r *repl) cmdStats(context.Context, string) error {
	used, held := r.model.memory()
	f, _ := r.model.facts()
	paced := r.model.pace()
	prompt, last := "none yet", "none yet"
	if r.last != nil {
		st := &r.last.Stats
		prompt = fmt.Sprintf("%d %s: %d reused, %d prefilled%s", st.PromptTokens, plural(st.PromptTokens, "token"), st.ReusedTokens, st.PromptTokens-st.ReusedTokens, atSpeed(st.PromptPerSec))
		last = fmt.Sprintf("%d %s%s, TTFT %s, seed %d", st.Tokens, plural(st.Tokens, "token"), atSpeed(st.DecodePerSec), seconds(st.TTFTSeconds), r.last.Seed)
	}
	rows := [][2]string{
		{"last prompt", prompt},
		{"last answer", last},
		{"all answers", fmt.Sprintf("%d, %d tokens; prompts of %d tokens, %d reused, %d prefilled", r.total.answers, r.total.tokens, r.total.prompt, r.total.reused, r.total.prompt-r.total.reused)},
		{"session", fmt.Sprintf("%d of %d tokens", held, f.cap)},
		{"VRAM", fmt.Sprintf("%s in use, %s streamed per token", formatSize(used), formatSize(f.plan.StreamedBytes))},
		{"pace", paced.String()},
		{"loads", fmt.Sprintf("%d, the last took %.2f s", r.model.loads, r.model.took.Seconds())},
	}
	if r.last != nil {
		rows = append(rows, expertRows(&r.last.Stats)...)
	}
	r.rows(rows)
	return nil
}

func (r *repl) rows(rows [][2]string) {
	for _, row := range rows {
		fmt.Fprintf(r.a.out, "  %-15s %s\n", row[0], row[1])
	}
}
