package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"leat/engine"
	"leat/internal/predict"
)

// A person is told of self-tests that take long, while they do and in all; of others where that is asked for.
func TestSelfTests(t *testing.T) {
	const begins = "leat: testing the kernels that this model uses, once on this driver\n"
	for _, c := range []struct {
		name  string
		each  time.Duration
		tests int
		asked bool
		want  string
	}{
		{"none", 0, 0, true, ""},
		{"quick ones", 100 * time.Millisecond, 3, false, ""},
		{"quick ones, asked for", 100 * time.Millisecond, 3, true, "leat: the self-tests of 3 kernels took 0.3 s; later runs know their results\n"},
		{"slow ones", 600 * time.Millisecond, 4, false, begins + "leat: the self-tests of 4 kernels took 2.4 s; later runs know their results\n"},
		{"a slow one", 2 * time.Second, 1, false, "leat: the self-tests of 1 kernel took 2.0 s; later runs know their results\n"},
	} {
		var errw bytes.Buffer
		a := newApp(strings.NewReader(""), &errw, &errw)
		now := time.Unix(0, 0)
		a.tests.now = func() time.Time { return now }
		for range c.tests {
			over := a.tests.begin("a kernel")
			now = now.Add(c.each)
			over()
		}
		a.tests.tell(c.asked)
		a.tests.tell(c.asked) // nothing is said twice
		if got := errw.String(); got != c.want {
			t.Errorf("%s: said %q, wanted %q", c.name, got, c.want)
		}
	}
}

// Nothing is measured before an answer is there and its model has left the device; the prediction comes last.
func TestAnswerBeforeMeasuring(t *testing.T) {
	needDevice(t)
	for _, stats := range []bool{true, false} {
		var out, errw bytes.Buffer
		a := newApp(strings.NewReader(""), &out, &errw)
		f := &runFlags{set: defaultSettings()}
		f.set.Temperature, f.set.Tokens, f.set.Stats = 0, 3, stats
		model := newTalk(t, engine.Options{}).model
		conv := conversation{Raw: true}
		conv.ask("Once upon a time")
		measured := 0
		err := f.once(t.Context(), a, model, &conv, func() *predictor {
			measured++
			if _, loaded := model.facts(); loaded || !strings.HasSuffix(out.String(), "\n") || !strings.Contains(errw.String(), "TTFT") {
				t.Errorf("measured with the model loaded (%t), after %q and %q", loaded, out.String(), errw.String())
			}
			return &predictor{predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 1e9}, Kernels: predict.KernelSpeeds{BytesPerSec: 1e9, FlopsPerSec: 1e9}}}
		})
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(strings.TrimSpace(errw.String()), "\n"); stats != (measured == 1) || stats != strings.Contains(lines[len(lines)-1], "predicted ") {
			t.Errorf("with stats %t: measured %d times, said %q", stats, measured, errw.String())
		}
	}
}

// Measuring that is interrupted after an answer takes nothing of it away.
func TestMeasuringInterrupted(t *testing.T) {
	needDevice(t)
	var out, errw bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errw)
	f := &runFlags{set: defaultSettings()}
	f.set.Tokens, f.set.Stats = 2, true
	conv := conversation{Raw: true}
	conv.ask("Once upon a time")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := f.once(ctx, a, newTalk(t, engine.Options{}).model, &conv, func() *predictor { cancel(); return nil })
	if code := a.report(ctx, err); code != exitInterrupted || out.Len() == 0 || !strings.Contains(errw.String(), "decode 2 tokens at ") {
		t.Errorf("exit code %d, %q, %q", code, out.String(), errw.String())
	}
}

// Where a person waits for a prompt, what is not known is not measured.
func TestNotNow(t *testing.T) {
	needDevice(t)
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, t.TempDir())
	}
	var errw bytes.Buffer
	a := newApp(strings.NewReader(""), &errw, &errw)
	f := &runFlags{set: defaultSettings()}
	f.kvType = "f16"
	if p := f.newPredictor(t.Context(), a, "demo", notNow); p != nil {
		t.Errorf("predicts with %+v", p.speeds)
	}
	if _, err := os.Stat(a.cached("calibration.json")); !os.IsNotExist(err) || errw.Len() > 0 {
		t.Errorf("something was measured: %v, %s", err, errw.String())
	}
}

// A program whose clock stands still, as in tests, says nothing of what self-tests take: the clock is the program's, also where it was
// given to it late.
func TestSelfTestsReadTheProgramsClock(t *testing.T) {
	var out bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &out)
	times := 0
	a.now = func() time.Time { times++; return time.Unix(1000, 0) }
	for range 3 {
		a.tests.begin("mul_mat")()
	}
	if a.tests.tell(false); times == 0 || out.Len() > 0 {
		t.Errorf("the program's clock was read %d times; said %q, wanted nothing", times, out.String())
	}
}
