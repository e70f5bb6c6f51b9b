package vk_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"leat/vk"
	"leat/vk/vktest"
)

func TestReadLoader(t *testing.T) {
	vktest.Instance(t) // skips where there is none
	l, err := vk.ReadLoader("")
	if err != nil {
		t.Fatal(err)
	}
	if l.Library == "" || l.Version < vk.MakeVersion(1, 0, 0) || len(l.Extensions) == 0 {
		t.Errorf("loader is %+v", l)
	}
	for _, layer := range l.Layers {
		if layer.Name == "" || layer.SpecVersion < vk.MakeVersion(1, 0, 0) {
			t.Errorf("layer is %+v", layer)
		}
	}
	if l.File == "" {
		t.Skip("this system does not say which file a library came from")
	}
	if _, err := os.Stat(l.File); err != nil {
		t.Error(err)
	}
	i, err := vk.Open(vk.InstanceOptions{LoaderPath: l.File})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}

func TestNoLoader(t *testing.T) {
	_, opened := vk.Open(vk.InstanceOptions{LoaderPath: "/nonexistent/libvulkan.so.1"})
	_, read := vk.ReadLoader("/nonexistent/libvulkan.so.1")
	for name, err := range map[string]error{"Open": opened, "ReadLoader": read} {
		var h interface{ Hint() string }
		if !errors.Is(err, vk.ErrNoLoader) || !errors.Is(err, vk.ErrNoDriver) || !errors.As(err, &h) || h.Hint() == "" {
			t.Errorf("%s: %v; want ErrNoLoader and ErrNoDriver with a hint", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "/nonexistent/libvulkan.so.1") {
			t.Errorf("%s: %v; want the path in it", name, err)
		}
	}
}
