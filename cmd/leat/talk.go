package main

import (
	"fmt"
	"slices"
)

// openTalk is the talk in progress, and what a file keeps of it. keptTalk is one of before.
type openTalk struct {
	name    string // of the model, as it was given
	conv    conversation
	set     settings
	start   settings // what set was at the beginning
	pending string   // the last question, where it got no answer
	attempt int      // retries of the last question
	last    *answer
	total   totals
	keep    *keeper
	safe    []message // the messages that a file has, by /save, /load or --resume
}

// totals are sums over all answers of a run.
type totals struct{ answers, prompt, reused, tokens int }

func (t *totals) add(s *runStats) {
	t.answers++
	t.prompt += s.PromptTokens
	t.reused += s.ReusedTokens
	t.tokens += s.Tokens
}

// hold keeps the talk as it stands, a question without an answer included.
func (t *openTalk) hold() {
	talk := t.conv.saved(t.name, &t.set)
	if t.pending != "" {
		talk.Messages = append(talk.Messages, message{Role: roleUser, Content: t.pending})
	}
	t.keep.hold(talk)
}

// unsaved tells whether the talk would be lost, were it not for what is kept by itself.
func (t *openTalk) unsaved() bool {
	return len(t.conv.Messages) > 0 && !slices.Equal(t.conv.Messages, t.safe)
}

// isSaved notes that a file has the talk as it stands.
func (t *openTalk) isSaved() { t.safe = slices.Clone(t.conv.Messages) }

// resume goes on with a conversation that was read from a file.
func (t *openTalk) resume(c conversation, set settings) {
	t.conv, t.set, t.last, t.attempt = c, set, nil, 0
	t.pending = t.conv.unanswered()
	t.isSaved()
}

// effective is a setting's value, and what it amounts to where the number alone doesn't
// say it.
func (t *openTalk) effective(row *setting) string {
	value := row.value(&t.set).String()
	means := row.zero
	if row.name == "seed" && t.last != nil {
		means = fmt.Sprintf("%s; the last answer had %d", means, t.last.Seed)
	}
	if means == "" || value != "" && value != "0" && !(value == "-1" && means == "all") {
		return orNone(value)
	}
	if value == "" {
		return means
	}
	return fmt.Sprintf("%s (%s)", value, means)
}
