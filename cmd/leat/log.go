package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// newLogger writes warnings as all else that leat says on stderr; with verbose everything, as a log.
func newLogger(w io.Writer, verbose bool) *slog.Logger {
	if verbose {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(&warnings{w: w, mu: new(sync.Mutex)})
}

// warnings prints a record as one line: leat: warning: what (name: value, …): why.
type warnings struct {
	w     io.Writer
	mu    *sync.Mutex
	attrs []slog.Attr
}

func (h *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (h *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warnings{h.w, h.mu, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

func (h *warnings) WithGroup(string) slog.Handler { return h } // a person needs no groups

func (h *warnings) Handle(_ context.Context, r slog.Record) error {
	attrs := h.attrs[:len(h.attrs):len(h.attrs)]
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	var facts []string
	why := ""
	for _, a := range attrs {
		text := a.Value.Resolve().String()
		if a.Key == "error" || a.Key == "err" {
			why = ": " + text
			continue
		}
		facts = append(facts, a.Key+": "+text)
	}
	line := r.Message
	if len(facts) > 0 {
		line += " (" + strings.Join(facts, ", ") + ")"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	printLines(h.w, "leat: warning: ", line+why)
	return nil
}
