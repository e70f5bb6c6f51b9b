package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

func main() {
	xmlPath := flag.String("xml", "/usr/share/vulkan/registry/vk.xml", "the Vulkan registry")
	outDir := flag.String("out", "vk/internal/raw", "folder of the generated files")
	check := flag.Bool("check", false, "write nothing; fail if a committed file is not made by this generator")
	all := flag.Bool("all", false, "with -check: generate, and fail if a committed file differs")
	flag.Parse()
	var err error
	if *check && !*all {
		err = checkSums(*outDir)
	} else {
		err = run(*xmlPath, *outDir, *check)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "genvk: error:", err)
		os.Exit(1)
	}
}

func run(xmlPath, outDir string, check bool) error {
	f, err := os.Open(xmlPath)
	if err != nil {
		return fmt.Errorf("open the registry: %w", err)
	}
	defer f.Close()
	reg, err := load(f, overlay())
	if err != nil {
		return fmt.Errorf("read %s: %w", xmlPath, err)
	}
	files, err := generate(reg, allow)
	if err != nil {
		return fmt.Errorf("generate from %s: %w", xmlPath, err)
	}
	stale, err := staleFiles(outDir, files)
	if err != nil {
		return err
	}
	if check {
		if err := sameVersion(outDir, reg.version()); err != nil {
			return err
		}
		return errors.Join(compare(outDir, files, stale), checkSums(outDir))
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(outDir, f.name), f.text, 0o644); err != nil {
			return err
		}
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(outDir, name)); err != nil {
			return err
		}
	}
	return writeSums(outDir, files)
}

// versionError says that the committed files come from another registry.
type versionError struct{ committed, registry string }

func (e *versionError) Error() string {
	return fmt.Sprintf("the committed files are made from vk.xml of Vulkan %s, this registry is of %s: nothing to compare", e.committed, e.registry)
}

var versionLine = regexp.MustCompile(`(?m)^// From vk\.xml of Vulkan ([0-9.]+)\.$`)

// sameVersion fails with a *versionError if the files in dir name another version.
func sameVersion(dir, version string) error {
	text, err := os.ReadFile(filepath.Join(dir, "gen_consts.go"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // compare says what is missing
		return fmt.Errorf("read the committed version: %w", err)
	}
	if m := versionLine.FindSubmatch(text); m != nil && string(m[1]) != version {
		return &versionError{string(m[1]), version}
	}
	return nil
}

// staleFiles lists gen_*.go files in dir that the generator no longer writes.
func staleFiles(dir string, files []file) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "gen_*.go"))
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, path := range found {
		name := filepath.Base(path)
		if !slices.ContainsFunc(files, func(f file) bool { return f.name == name }) {
			stale = append(stale, name)
		}
	}
	return stale, nil
}

// compare fails with every file in dir that is not as generated.
func compare(dir string, files []file, stale []string) error {
	var errs []error
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		old, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("%s is missing", path))
		case err != nil:
			errs = append(errs, err)
		case !bytes.Equal(old, f.text):
			errs = append(errs, fmt.Errorf("%s differs from what the registry gives (line %d)", path, firstDifference(old, f.text)))
		}
	}
	for _, name := range stale {
		errs = append(errs, fmt.Errorf("%s is no longer generated", filepath.Join(dir, name)))
	}
	return errors.Join(errs...)
}

// firstDifference returns the number of the first line in which a and b differ.
func firstDifference(a, b []byte) int {
	la, lb := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(la), len(lb)) {
		if !bytes.Equal(la[i], lb[i]) {
			return i + 1
		}
	}
	return min(len(la), len(lb)) + 1
}
