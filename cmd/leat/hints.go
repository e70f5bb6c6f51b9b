package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"leat/decompose"
	"leat/decompose/pack"
	"leat/engine"
	"leat/vk"
)

// loaderEnv names the Vulkan loader to use in place of the system's. It is the one variable
// that leat itself reads to find Vulkan; libraries read none.
const loaderEnv = "LEAT_VULKAN_LIBRARY"

// vulkan is how every command opens Vulkan.
func (a *app) vulkan() vk.InstanceOptions {
	return vk.InstanceOptions{LoaderPath: os.Getenv(loaderEnv), Logger: a.log}
}

// explainLoader gives an error about a loader that was named the hint where it was named.
func explainLoader(err error) error {
	path := os.Getenv(loaderEnv)
	if path == "" || !errors.Is(err, vk.ErrNoLoader) {
		return err
	}
	return withHint(err, "%s is set to %s: set it to a Vulkan loader's file, or unset it to use the system's", loaderEnv, path)
}

// hintFor is what a user can do about err: its own hint, or what follows from its kind.
func hintFor(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		if _, raw := hinted.(*vk.CallError); !raw { // of those we know better here
			return hinted.Hint()
		}
	}
	switch {
	case errors.Is(err, engine.ErrContextFull):
		return "a larger --ctx holds more, as far as the model was trained for it; or make the prompt shorter"
	case errors.Is(err, engine.ErrDeviceLost):
		return "the driver gave the device up: start again; if it happens again, update the driver, and send what \"leat doctor\" and the system's log say"
	case errors.Is(err, vk.ErrOutOfDeviceMemory):
		return "less was free than the driver said: close what else uses the GPU, or set --vram below what \"leat devices\" shows"
	case errors.Is(err, vk.ErrOutOfHostMemory):
		return "the system gave no more memory: close other programs, or set --ram lower"
	case decompose.DiskFull(err):
		return "the disk is full: free some space on it, or name a place on another"
	}
	return ""
}

// missingModel says that there is nothing at path, and what there is instead.
func missingModel(path string, err error) error {
	near, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.gguf"))
	for i := range near {
		near[i] = filepath.Base(near[i])
	}
	if halves, _ := filepath.Glob(path + ".*"); len(halves) > 0 && errors.Is(err, fs.ErrNotExist) {
		what := "a download that is not finished, or part of it"
		if strings.HasSuffix(halves[0], pack.PartialSuffix) {
			what = "an unfinished pack: run the same leat decompose again, it resumes"
		}
		return withHint(fmt.Errorf("find the model: %w", err), "there is %s: %s", halves[0], what)
	}
	hint := "give the path of a GGUF file or a pack, or the word demo"
	if n := len(near); n > 0 {
		hint = fmt.Sprintf("in that folder: %s", strings.Join(near[:min(n, 5)], ", "))
		if n > 5 {
			hint += fmt.Sprintf(" and %d more", n-5)
		}
	}
	return withHint(fmt.Errorf("find the model: %w", err), "%s", hint)
}
