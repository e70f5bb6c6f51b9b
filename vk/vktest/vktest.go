package vktest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"leat/vk"
)

type config struct {
	device vk.DeviceOptions
}

// Option changes how Open opens.
type Option func(*config)

// OneQueue makes the transfer queue the compute queue, as on small hardware.
func OneQueue() Option { return func(c *config) { c.device.OneQueue = true } }

// Disable turns groups of features off, see vk.Disabled.
func Disable(names ...string) Option {
	return func(c *config) { c.device.Disable = append(c.device.Disable, names...) }
}

// Watch has f asked before each call of the device, see [vk.Fault].
func Watch(f vk.Fault) Option { return func(c *config) { c.device.Fault = f } }

// Enable is what LEAT_ENABLE names, for tests that open a device in another way.
func Enable() []string {
	return strings.FieldsFunc(os.Getenv("LEAT_ENABLE"), func(r rune) bool { return r == ',' })
}

// Disabled are the groups of features that change anything on the device of the tests, of those that [vk.Disabled] names.
func Disabled(t testing.TB) []string {
	t.Helper()
	p, err := Instance(t).Pick("")
	if err != nil {
		t.Fatal(err)
	}
	choose := func(disable ...string) vk.Features {
		f, err := p.Choose(disable, Enable())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	return slices.DeleteFunc(vk.Disabled(), func(name string) bool { return reflect.DeepEqual(choose(name), choose()) })
}

// Open opens a device of its own for t, closed when t ends.
func Open(t testing.TB, options ...Option) *vk.Device {
	t.Helper()
	var c config
	for _, o := range options {
		o(&c)
	}
	i := Instance(t)
	p, err := i.Pick("")
	if err != nil {
		t.Fatal(err)
	}
	c.device.Enable = Enable()
	if slices.Contains(c.device.Enable, "coopmat") && !p.Features.CooperativeMatrix {
		t.Fatalf("LEAT_ENABLE=coopmat, but %s (%s) has no cooperative matrices", p.Name, p.DriverInfo)
	}
	d, err := i.NewDevice(p, c.device)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Instance opens Vulkan for t, as Open does.
func Instance(t testing.TB) *vk.Instance {
	t.Helper()
	validate := os.Getenv("LEAT_VALIDATE") == "1"
	i, err := vk.Open(vk.InstanceOptions{Validate: validate, Logger: slog.New(&handler{t: t})})
	switch {
	case err == nil:
	case errors.Is(err, vk.ErrNoDriver) && os.Getenv("LEAT_REQUIRE_DEVICE") != "1":
		t.Skipf("no device to test on: %v%s", err, hint(err))
	default:
		t.Fatalf("%v%s", err, hint(err))
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
		if n := i.Messages(); n > 0 {
			t.Errorf("the validation layer sent %d messages", n)
		}
	})
	return i
}

func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return " (" + h.Hint() + ")"
	}
	return ""
}

// handler writes a logger's warnings into the test's log.
type handler struct {
	t     testing.TB
	attrs []slog.Attr
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	s := r.Message
	add := func(a slog.Attr) bool {
		s += " " + a.String()
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	h.t.Logf("%v %s", r.Level, s)
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.t, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

func (h *handler) WithGroup(string) slog.Handler { return h }
