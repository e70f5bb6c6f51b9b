package vk

import (
	"errors"
	"fmt"

	"leat/vk/internal/raw"
)

// Loader is what the Vulkan loader says of itself, before any driver is asked.
type Loader struct {
	Library    string // the name it was opened by
	File       string // the file that is, "" where the system does not say
	Version    Version
	Layers     []Layer
	Extensions []string
}

// Layer is code that the loader can put between a program and its drivers.
type Layer struct {
	Name, Description string
	SpecVersion       Version // of Vulkan, that the layer knows
}

// ReadLoader opens the Vulkan loader at path, "" for the system's, and asks what
// it is. It needs no driver. The error is ErrNoLoader, with a hint.
func ReadLoader(path string) (*Loader, error) {
	loader, err := openLoader(path)
	if err != nil {
		return nil, err
	}
	l := &Loader{Library: loader.Library, File: loader.File()}
	var version uint32
	if err := check("vkEnumerateInstanceVersion", "", loader.EnumerateInstanceVersion(&version)); err != nil {
		return nil, fmt.Errorf("read the Vulkan loader: %w", err)
	}
	l.Version = Version(version)
	if l.Layers, err = instanceLayers(loader); err != nil {
		return nil, err
	}
	l.Extensions, err = instanceExtensions(loader)
	return l, err
}

// TryDriver opens a driver's library as the loader would, to learn why it does
// not load. The library stays open.
func TryDriver(library string) error { return raw.TryLibrary(library) }

func openLoader(path string) (*raw.Loader, error) {
	loader, err := raw.LoadFrom(path)
	if err == nil {
		return loader, nil
	}
	var h interface{ Hint() string }
	hint := ""
	if errors.As(err, &h) {
		hint = h.Hint()
	}
	return nil, &hintError{fmt.Errorf("open Vulkan: %w", err), errors.Join(ErrNoLoader, ErrNoDriver), hint}
}

func instanceExtensions(l *raw.Loader) ([]string, error) {
	var props []raw.ExtensionProperties
	err := enumerate("vkEnumerateInstanceExtensionProperties", &props, func(n *uint32, p *raw.ExtensionProperties) raw.Result {
		return l.EnumerateInstanceExtensionProperties(nil, n, p)
	})
	if err != nil {
		return nil, fmt.Errorf("open Vulkan: %w", err)
	}
	return extensionNames(props), nil
}

func instanceLayers(l *raw.Loader) ([]Layer, error) {
	var props []raw.LayerProperties
	if err := enumerate("vkEnumerateInstanceLayerProperties", &props, l.EnumerateInstanceLayerProperties); err != nil {
		return nil, fmt.Errorf("open Vulkan: %w", err)
	}
	layers := make([]Layer, len(props))
	for n := range props {
		layers[n] = Layer{raw.GoString(&props[n].LayerName[0]), raw.GoString(&props[n].Description[0]), Version(props[n].SpecVersion)}
	}
	return layers, nil
}
