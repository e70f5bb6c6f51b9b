package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const program = "./cmd/leat"

// module is a line of what "go list" says about a package.
type module struct {
	Path, Version, Dir string
	Main               bool
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("notices: ")
	out := flag.String("o", "THIRD_PARTY_LICENSES.txt", "file to write")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: notices [-o FILE] GOOS/GOARCH…")
	}
	if err := write(*out, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func write(out string, targets []string) error {
	modules, err := linked(targets)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "leat is linked from the modules below; these are their licences.\n")
	for _, m := range modules {
		files, err := licences(m.Dir)
		if err != nil {
			return fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "\n%s\n%s %s, %s\n\n%s\n", strings.Repeat("-", 78), m.Path, m.Version, filepath.Base(file), bytes.TrimSpace(data))
		}
	}
	return os.WriteFile(out, text.Bytes(), 0o644)
}

// linked lists the modules of the program for any of the targets, and Go itself.
func linked(targets []string) ([]module, error) {
	goroot, err := goCommand(nil, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	version, err := goCommand(nil, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	found := map[string]module{"": {Path: "The Go standard library and runtime", Version: strings.TrimSpace(string(version)), Dir: strings.TrimSpace(string(goroot))}}
	for _, target := range targets {
		goos, goarch, ok := strings.Cut(target, "/")
		if !ok {
			return nil, fmt.Errorf("target: found %q, wanted GOOS/GOARCH", target)
		}
		list, err := goCommand([]string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch}, "list", "-deps", "-json=Module", program)
		if err != nil {
			return nil, err
		}
		for dec := json.NewDecoder(bytes.NewReader(list)); ; {
			var p struct{ Module *module }
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("read what go list says: %w", err)
			}
			if p.Module != nil && !p.Module.Main {
				found[p.Module.Path] = *p.Module
			}
		}
	}
	var modules []module
	for _, m := range found {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, nil
}

func goCommand(env []string, args ...string) ([]byte, error) {
	c := exec.Command("go", args...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// licences are the files in a module's folder that say how it may be passed on.
func licences(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		for _, kind := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE"} {
			if e.Type().IsRegular() && strings.HasPrefix(name, kind) && !strings.HasSuffix(name, ".GO") {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("found none in %s", dir)
	}
	return files, nil
}
