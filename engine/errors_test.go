package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/chat"
	"leat/engine/sample"
	"leat/engine/token"
	"leat/gguf"
	"leat/tools/testdata"
	"leat/vk"
)

// Every error that callers may ask for comes where the documentation says.
func TestErrors(t *testing.T) {
	demo, faults, tiny := testdata.Root(t)+"/cmd/leat/demo/leat-demo-q4_k_m.gguf", filepath.Join(testdata.Dir(t), "faults"), filepath.Join(testdata.Dir(t), "models", "qwen2-tiny-q8_0.gguf")
	small := engine.Options{ContextLength: 32}
	opening := func(path string, o engine.Options) func(*testing.T) error {
		return func(t *testing.T) error {
			m, err := engine.LoadSetup(t.Context(), path, lend(setup(o)))
			if err == nil {
				m.Close()
			}
			return err
		}
	}
	talking := func(path string, do func(t *testing.T, m *engine.Model, s *engine.Session) error) func(*testing.T) error {
		return func(t *testing.T) error {
			m := load(t, path, setup(small))
			s, err := m.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			return do(t, m, s)
		}
	}
	forward := func(ids ...token.ID) func(*testing.T, *engine.Model, *engine.Session) error {
		return func(t *testing.T, _ *engine.Model, s *engine.Session) error {
			_, err := s.Forward(t.Context(), ids)
			return err
		}
	}
	for name, tt := range map[string]struct {
		do func(*testing.T) error
		is func(error) bool
	}{
		"option":        {opening(demo, engine.Options{KVType: "q1"}), as[*engine.OptionError]},
		"tuning":        {opening(demo, engine.Options{Tuning: engine.Tuning{Chunk: -1}}), as[*engine.OptionError]},
		"limit":         {opening(demo, engine.Options{Tuning: engine.Tuning{Limits: engine.Limits{DiskBytesPerSec: -1}}}), as[*engine.OptionError]},
		"budget":        {opening(demo, engine.Options{DeviceBytes: 1000}), as[*engine.BudgetError]},
		"sessions":      {talking(demo, func(t *testing.T, m *engine.Model, _ *engine.Session) error { _, err := m.NewSession(); return err }), as[*engine.BudgetError]},
		"unsupported":   {opening(filepath.Join(testdata.Dir(t), "vendor", "vocab", "ggml-vocab-mpt.gguf"), small), as[*engine.UnsupportedError]},
		"format":        {opening(os.Args[0], small), is(gguf.ErrFormat)},
		"no file":       {opening("nowhere.gguf", small), is(os.ErrNotExist)},
		"no device":     {opening(demo, engine.Options{Tuning: engine.Tuning{VulkanLoader: filepath.Join(t.TempDir(), "no")}}), is(engine.ErrNoDevice)},
		"canceled":      {talking(demo, canceled), is(context.Canceled)},
		"unknown id":    {talking(demo, forward(1, 1<<20)), as[*engine.TokenError]},
		"negative id":   {talking(demo, forward(-1)), as[*engine.TokenError]},
		"no tokens":     {talking(demo, forward()), is(engine.ErrNoTokens)},
		"full":          {talking(demo, forward(make([]token.ID, 33)...)), is(engine.ErrContextFull)},
		"busy":          {talking(demo, busy), is(engine.ErrBusy)},
		"closed":        {talking(demo, func(t *testing.T, m *engine.Model, s *engine.Session) error { s.Close(); return forward(1)(t, m, s) }), is(engine.ErrClosed)},
		"closed model":  {talking(demo, func(t *testing.T, m *engine.Model, s *engine.Session) error { m.Close(); return forward(1)(t, m, s) }), is(engine.ErrClosed)},
		"no tokenizer":  {talking(filepath.Join(faults, "notok.gguf"), func(t *testing.T, m *engine.Model, _ *engine.Session) error { return m.TokenizerError() }), is(engine.ErrNoTokenizer)},
		"no text":       {talking(filepath.Join(faults, "notok.gguf"), encodeChat), is(engine.ErrNoTokenizer)},
		"no template":   {talking(tiny, encodeChat), is(engine.ErrNoChatTemplate)},
		"no talk":       {talking(tiny, chatting), is(engine.ErrNoChatTemplate)},
		"parameter":     {talking(demo, sampling), as[*sample.RangeError]},
		"not finite":    {talking(filepath.Join(faults, "nan_norm.gguf"), forward(3, 4, 5)), as[*engine.NotFiniteError]},
		"device lost":   {lost(demo), is(engine.ErrDeviceLost)},
		"changed file":  {changedFile(demo), as[*engine.SourceChangedError]},
		"not this time": {talking(demo, forward(1)), func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.do(t); !tt.is(err) {
				t.Errorf("found error %T: %v", err, err)
			}
		})
	}
}

func is(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }

func as[E error](err error) bool {
	var of E
	return errors.As(err, &of) && of.Error() != ""
}

func canceled(t *testing.T, _ *engine.Model, s *engine.Session) error {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Forward(ctx, []token.ID{1})
	return err
}

func busy(t *testing.T, _ *engine.Model, s *engine.Session) (err error) {
	for range s.Generate(t.Context(), []token.ID{1}, engine.Params{MaxTokens: 2}) {
		err = s.Truncate(0)
	}
	return err
}

func encodeChat(t *testing.T, m *engine.Model, _ *engine.Session) error {
	_, err := m.EncodeChat(t.Context(), []chat.Message{{Role: "user", Content: "Hello"}}, chat.RenderOptions{})
	return err
}

func chatting(t *testing.T, _ *engine.Model, s *engine.Session) (last error) {
	for _, err := range engine.NewChat(s, engine.Params{}).Say(t.Context(), "Hello") {
		last = err
	}
	return last
}

func sampling(t *testing.T, _ *engine.Model, s *engine.Session) (last error) {
	for _, err := range s.Generate(t.Context(), []token.ID{1}, engine.Params{Params: sample.Params{TopP: 2}}) {
		last = err
	}
	return last
}

// lost has the device fail in a step.
func lost(path string) func(*testing.T) error {
	return func(t *testing.T) error {
		stepping := false
		o := engine.WithDeviceFault(setup(engine.Options{ContextLength: 32}), func(call string) vk.Result {
			if stepping && strings.HasPrefix(call, "vkQueueSubmit") {
				return vk.ErrDeviceLost
			}
			return 0
		})
		m := load(t, path, o)
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		stepping = true
		_, err = s.Forward(t.Context(), []token.ID{1})
		stepping = false
		return err
	}
}

// changedFile has a model's file written to while its weights are read from it in every step.
func changedFile(path string) func(*testing.T) error {
	return func(t *testing.T) error {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(own, data, 0o644); err != nil {
			t.Fatal(err)
		}
		o := setup(engine.Options{ContextLength: 32, HostBytes: 1, DeviceBytes: 1})
		_, err = engine.LoadSetup(t.Context(), own, lend(o))
		o.DeviceBytes = budgetNeed(t, err)
		m := load(t, own, o)
		s, err := m.NewSession()
		if err == nil {
			err = m.Loaded(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, own)
		for range 6 { // what was read ahead stays good
			if _, err = s.Forward(t.Context(), []token.ID{1}); err != nil {
				break
			}
		}
		return err
	}
}
