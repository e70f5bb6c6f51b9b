package main

import (
	"fmt"
	"strings"

	"leat/internal/plan"
)

// topics are what /show knows; their names complete.
var topics = []struct {
	name string
	show func(*viewer) error
}{
	{"settings", (*viewer).settings},
	{"model", (*viewer).modelFacts},
	{"plan", (*viewer).plan},
	{"system", (*viewer).system},
	{"messages", (*viewer).messages},
}

// viewer shows what /show and /stats ask for. It changes nothing.
type viewer struct {
	a     *app
	ui    *console
	model *resident
	talk  *openTalk
}

func (r *repl) viewer() *viewer { return &viewer{r.a, r.ui, r.model, r.talk} }

// show shows a topic; "": the settings.
func (v *viewer) show(arg string) error {
	if arg == "" {
		arg = "settings"
	}
	var names []string
	for _, t := range topics {
		if t.name == arg {
			return t.show(v)
		}
		names = append(names, t.name)
	}
	return &usageError{text: fmt.Sprintf("/show knows no %q", arg), hint: "it knows " + strings.Join(names, ", ")}
}

func (v *viewer) settings() error {
	values, start := v.talk.set.values(), v.talk.start.values()
	for _, row := range settingTable {
		value := v.talk.effective(&row)
		if values[row.name] != start[row.name] {
			value += "  (was " + orNone(start[row.name]) + ")"
		}
		fmt.Fprintf(v.a.out, "  %-21s %s\n", row.name, value)
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func (v *viewer) modelFacts() error {
	f, loaded := v.model.facts()
	template := "its own"
	if !f.hasTemplate {
		template = "none"
	} else if v.talk.conv.Raw {
		template = "its own, not used (--raw)"
	}
	state := "loaded"
	if !loaded {
		state = fmt.Sprintf("freed after %s without a question; the next one loads it again", v.model.idle)
	}
	v.rows([][2]string{
		{"model", v.talk.name}, {"architecture", f.arch}, {"device", f.device}, {"state", state},
		{"context", fmt.Sprintf("%d tokens (trained for %d)", f.cap, f.trained)}, {"chat template", template},
	})
	return nil
}

func (v *viewer) plan() error {
	f, _ := v.model.facts()
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
	v.rows(rows)
	return nil
}

func (v *viewer) system() error {
	fmt.Fprintln(v.a.out, orNone(printable(v.talk.conv.System)))
	return nil
}

func (v *viewer) messages() error {
	for i, m := range v.talk.conv.Messages {
		if i == v.talk.conv.Dropped && i > 0 {
			v.ui.note("the model isn't given what stands above")
		}
		v.a.printText(m.Role + ": " + strings.TrimRight(m.Content, "\n"))
	}
	if len(v.talk.conv.Messages) == 0 {
		v.ui.note("nothing was said yet")
	}
	return nil
}

func (v *viewer) stats() error {
	used, held := v.model.memory()
	f, _ := v.model.facts()
	paced := v.model.pace()
	prompt, last := "none yet", "none yet"
	if v.talk.last != nil {
		st := &v.talk.last.Stats
		prompt = fmt.Sprintf("%d %s: %d reused, %d prefilled%s", st.PromptTokens, plural(st.PromptTokens, "token"), st.ReusedTokens, st.PromptTokens-st.ReusedTokens, atSpeed(st.PromptPerSec))
		last = fmt.Sprintf("%d %s%s, TTFT %s, seed %d", st.Tokens, plural(st.Tokens, "token"), atSpeed(st.DecodePerSec), seconds(st.TTFTSeconds), v.talk.last.Seed)
	}
	rows := [][2]string{
		{"last prompt", prompt},
		{"last answer", last},
		{"all answers", fmt.Sprintf("%d, %d tokens; prompts of %d tokens, %d reused, %d prefilled", v.talk.total.answers, v.talk.total.tokens, v.talk.total.prompt, v.talk.total.reused, v.talk.total.prompt-v.talk.total.reused)},
		{"session", fmt.Sprintf("%d of %d tokens", held, f.cap)},
		{"VRAM", fmt.Sprintf("%s in use, %s streamed per token", formatSize(used), formatSize(f.plan.StreamedBytes))},
		{"pace", paced.String()},
		{"loads", fmt.Sprintf("%d, the last took %.2f s", v.model.loads, v.model.took.Seconds())},
	}
	if v.talk.last != nil {
		rows = append(rows, expertRows(&v.talk.last.Stats)...)
	}
	v.rows(rows)
	return nil
}

func (v *viewer) rows(rows [][2]string) {
	for _, row := range rows {
		fmt.Fprintf(v.a.out, "  %-15s %s\n", row[0], row[1])
	}
}
