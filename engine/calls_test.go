package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/chat"
	"leat/engine/token"
	"leat/tools/testdata"
)

// sessionCall is an exported method of Session as the tables below call it.
type sessionCall struct {
	do   func(ctx context.Context, s *engine.Session, ids []token.ID) error
	owns bool // it runs or forgets tokens: no other such call may run meanwhile
	runs bool // it runs tokens, under a context and into the room that is left
}

var sessionCalls = map[string]sessionCall{
	"Close":  {do: func(_ context.Context, s *engine.Session, _ []token.ID) error { s.Close(); return nil }},
	"Len":    {do: func(_ context.Context, s *engine.Session, _ []token.ID) error { s.Len(); return nil }},
	"Cap":    {do: func(_ context.Context, s *engine.Session, _ []token.ID) error { s.Cap(); return nil }},
	"Tokens": {do: func(_ context.Context, s *engine.Session, _ []token.ID) error { s.Tokens(); return nil }},
	"Truncate": {owns: true, do: func(_ context.Context, s *engine.Session, _ []token.ID) error {
		return s.Truncate(s.Len() / 2)
	}},
	"Reuse": {owns: true, do: func(_ context.Context, s *engine.Session, ids []token.ID) error {
		_, err := s.Reuse(ids)
		return err
	}},
	"Forward": {owns: true, runs: true, do: func(ctx context.Context, s *engine.Session, ids []token.ID) error {
		_, err := s.Forward(ctx, ids)
		return err
	}},
	"Next": {owns: true, runs: true, do: func(ctx context.Context, s *engine.Session, ids []token.ID) error {
		_, err := s.Next(ctx, ids)
		return err
	}},
	"Logits": {owns: true, runs: true, do: func(ctx context.Context, s *engine.Session, ids []token.ID) (last error) {
		for _, err := range s.Logits(ctx, ids) {
			last = err
		}
		return last
	}},
	"Generate": {owns: true, runs: true, do: func(ctx context.Context, s *engine.Session, ids []token.ID) (last error) {
		for _, err := range s.Generate(ctx, ids, engine.Params{MaxTokens: 2, IgnoreEOG: true}) {
			last = err
		}
		return last
	}},
}

// TestSessionCalls walks every exported call of a session that is closed, busy, canceled or full. Each says so, and a new session of the
// same model finds the text that one finds before.
func TestSessionCalls(t *testing.T) {
	m := demoModel(t, setup(engine.Options{ContextLength: 16, Sessions: 2}))
	prompt := m.Encode("Once upon a time there was a", true)
	open := func(t *testing.T) *engine.Session {
		t.Helper()
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	_, want, _ := generate(t, open(t), prompt, engine.Params{MaxTokens: 3})
	wants := func(t *testing.T, call string, got, want error) {
		t.Helper()
		if !errors.Is(got, want) {
			t.Errorf("%s ended with %v, wanted %v", call, got, want)
		}
	}
	states := map[string]func(t *testing.T, name string, c sessionCall, s *engine.Session){}
	states["closed"] = func(t *testing.T, name string, c sessionCall, s *engine.Session) {
		s.Close()
		var want error
		if c.owns {
			want = engine.ErrClosed
		}
		wants(t, name, c.do(t.Context(), s, prompt), want)
	}
	states["busy"] = func(t *testing.T, name string, c sessionCall, s *engine.Session) {
		var want, end error
		if c.owns {
			want = engine.ErrBusy
		}
		if name == "Close" {
			end = engine.ErrClosed
		}
		var last error
		for _, err := range s.Generate(t.Context(), prompt, engine.Params{MaxTokens: 3, IgnoreEOG: true}) {
			if last = err; err == nil {
				wants(t, name, c.do(t.Context(), s, prompt), want)
			}
		}
		wants(t, "the other call", last, end)
	}
	states["canceled"] = func(t *testing.T, name string, c sessionCall, s *engine.Session) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var want error
		if c.runs {
			want = context.Canceled
		}
		wants(t, name, c.do(ctx, s, prompt), want)
	}
	states["full"] = func(t *testing.T, name string, c sessionCall, s *engine.Session) {
		for s.Len() < s.Cap() {
			if _, err := s.Next(t.Context(), prompt[:1]); err != nil {
				t.Fatal(err)
			}
		}
		var want error
		if c.runs {
			want = engine.ErrContextFull
		}
		wants(t, name, c.do(t.Context(), s, prompt), want)
	}
	kind := reflect.TypeFor[*engine.Session]()
	for i := range kind.NumMethod() {
		name := kind.Method(i).Name
		if name == "LookAt" { // the tests' own
			continue
		}
		c, ok := sessionCalls[name]
		if !ok {
			t.Errorf("Session.%s is not in the table", name)
			continue
		}
		for state, try := range states {
			t.Run(name+" "+state, func(t *testing.T) {
				s := open(t)
				try(t, name, c, s)
				s.Close()
				if _, got, _ := generate(t, open(t), prompt, engine.Params{MaxTokens: 3}); got != want {
					t.Errorf("a session after that has %q, wanted %q", got, want)
				}
			})
		}
	}
}

// TestSessionClosedMidStep: closing a session stops the step that it runs, which waits for a disk, and no other session's.
func TestSessionClosedMidStep(t *testing.T) {
	disk := newStuckDisk(30)
	m := demoStreamed(t, 1, func(o engine.Setup) engine.Setup { return engine.WithFault(o, disk.fault) })
	prompt := m.Encode("Once upon a time", true)
	for _, canEnd := range []bool{false, true} { // its context can, too
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if !canEnd {
			ctx = context.Background()
		}
		ended := make(chan error)
		go func() {
			var last error
			for _, err := range s.Generate(ctx, prompt, engine.Params{MaxTokens: 20, IgnoreEOG: true}) {
				last = err
			}
			ended <- last
		}()
		<-disk.stuck
		s.Close()
		if err := <-ended; !errors.Is(err, engine.ErrClosed) {
			t.Errorf("the generation ended with %v", err)
		}
	}
	close(disk.gate)
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, _, _ := generate(t, s, prompt, engine.Params{MaxTokens: 3})
	whole, err := demoModel(t, setup(engine.Options{ContextLength: 64})).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if want, _, _ := generate(t, whole, prompt, engine.Params{MaxTokens: 3}); !slices.Equal(got, want) {
		t.Errorf("a session after that has %v, wanted %v", got, want)
	}
}

// TestModelCallsAfterClose: what would need the device of a closed model says so, and what is known of it stays known.
func TestModelCallsAfterClose(t *testing.T) {
	m := load(t, filepath.Join(testdata.Dir(t), "models", "qwen3-tiny-q8_0.gguf"), setup(engine.Options{ContextLength: 32}))
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(t.Context(), []token.ID{1}); err != nil {
		t.Fatal(err)
	}
	messages := []chat.Message{{Role: "user", Content: "Hello"}}
	ctx := t.Context()
	calls := map[string]func() any{
		"Breakers":        func() any { return m.Breakers("\n") },
		"ChatTemplate":    func() any { _, err := m.ChatTemplate(); return errorText(err) },
		"Close":           func() any { return m.Close() },
		"DeviceName":      func() any { return m.DeviceName() },
		"Encode":          func() any { return m.Encode("Once", true) },
		"EncodeChat":      func() any { _, err := m.EncodeChat(ctx, messages, chat.RenderOptions{}); return errorText(err) },
		"HasChatTemplate": func() any { return m.HasChatTemplate() },
		"Embed": func() any {
			_, err := m.Embed(ctx, [][]token.ID{{1}}, engine.EmbedOptions{Pooling: engine.PoolingLast})
			return err
		},
		"Info":           func() any { return m.Info() },
		"Loaded":         func() any { return m.Loaded(ctx) },
		"NewSession":     func() any { _, err := m.NewSession(); return err },
		"Plan":           func() any { return m.Plan() },
		"RenderChat":     func() any { _, err := m.RenderChat(ctx, messages, chat.RenderOptions{}); return errorText(err) },
		"Stats":          func() any { return m.Stats().Steps },
		"Tokenizer":      func() any { return m.Tokenizer() },
		"TokenizerError": func() any { return m.TokenizerError() },
	}
	before := map[string]any{}
	for name, do := range calls {
		if name != "Close" && name != "NewSession" {
			before[name] = do()
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	kind := reflect.TypeFor[*engine.Model]()
	for i := range kind.NumMethod() {
		name := kind.Method(i).Name
		if slices.Contains([]string{"ClockWidth", "Passed", "Step", "Wake"}, name) { // the tests' own
			continue
		}
		do, ok := calls[name]
		switch {
		case !ok:
			t.Errorf("Model.%s is not in the table", name)
		case name == "NewSession" || name == "Loaded" || name == "Embed":
			if err, _ := do().(error); !errors.Is(err, engine.ErrClosed) || !strings.Contains(err.Error(), "the model") {
				t.Errorf("%s of a closed model ended with %v", name, err)
			}
		default:
			if got := do(); !reflect.DeepEqual(got, before[name]) {
				t.Errorf("%s of a closed model gives %v, before %v", name, got, before[name])
			}
		}
	}
	for name, c := range sessionCalls {
		if err := c.do(ctx, s, []token.ID{1}); c.owns && (!errors.Is(err, engine.ErrClosed) || !strings.Contains(err.Error(), "the model")) {
			t.Errorf("%s in a closed model ended with %v", name, err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
