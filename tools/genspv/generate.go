package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"leat/shaders"
	"leat/tools/gensum"

	"golang.org/x/sync/errgroup"
)

// kernel is a row of the table and the state of its compiled file.
type kernel struct {
	shaders.Kernel
	from  string // what its sources and arguments hash to
	have  []byte // the file; nil: missing
	fresh bool   // the file was made from these sources
}

func (k *kernel) file() string { return k.Name + ".spv" }

func (k *kernel) matrices() bool { return k.Needs&shaders.CoopMatrix != 0 }

func generate(o options, out io.Writer) error {
	if o.dir == "" {
		dir, err := findDir()
		if err != nil {
			return err
		}
		o.dir = dir
	}
	sumsPath := filepath.Join(o.dir, "spv.sum")
	sums, err := gensum.Read(sumsPath)
	if err != nil {
		return err
	}
	list, err := kernels(o, sums)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(o.dir, "spv"), 0o755); err != nil {
		return err
	}
	before := maps.Clone(sums)
	compiled, err := each(o, list, sums)
	if o.name == "" {
		err = errors.Join(err, stale(o, sums))
	}
	if !o.check && !maps.Equal(before, sums) {
		err = errors.Join(err, gensum.Write(sumsPath, sums))
	}
	if err != nil {
		return err
	}
	verb := "wrote"
	if o.check {
		verb = "checked"
	}
	fmt.Fprintf(out, "%s %d kernels, %d of them compiled\n", verb, len(list), compiled)
	return nil
}

// kernels lists the rows that are asked for.
func kernels(o options, sums map[string]gensum.Sum) ([]kernel, error) {
	sources := sourceTree{dir: o.dir, read: map[string][][]byte{}}
	var list []kernel
	for _, row := range shaders.Kernels() {
		if row.Module != row.Name || !strings.HasPrefix(row.Name, o.name) {
			continue
		}
		k := kernel{Kernel: row}
		var err error
		if k.from, err = sources.hash(row); err != nil {
			return nil, err
		}
		if k.have, err = os.ReadFile(filepath.Join(o.dir, "spv", k.file())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		k.fresh = k.have != nil && sums[k.file()] == gensum.Sum{From: k.from, Made: gensum.Hash(k.have)}
		list = append(list, k)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no kernel's name begins with %q", o.name)
	}
	return list, nil
}

// each checks or compiles the kernels of a list and notes what was made in sums. One run shows several errors.
func each(o options, list []kernel, sums map[string]gensum.Sum) (compiled int, err error) {
	errs, made := make([]error, len(list)), make([][]byte, len(list))
	var g errgroup.Group
	g.SetLimit(runtime.NumCPU())
	for i := range list {
		g.Go(func() error {
			made[i], errs[i] = one(o, &list[i])
			return nil
		})
	}
	g.Wait()
	for i := range list {
		if made[i] == nil {
			continue
		}
		compiled++
		if errs[i] == nil && !o.check {
			sums[list[i].file()] = gensum.Sum{From: list[i].from, Made: gensum.Hash(made[i])}
		}
	}
	return compiled, few(errs)
}

// few joins the first errors and counts the others: a file that many sources include makes as many.
func few(errs []error) error {
	const most = 8
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if n := len(errs) - most; n > 0 {
		errs = append(errs[:most:most], fmt.Errorf("and %d more kernels", n))
	}
	return errors.Join(errs...)
}

// one checks a kernel by its sums, or compiles it and writes or compares the file; made is nil where nothing was compiled.
func one(o options, k *kernel) (made []byte, err error) {
	switch {
	case !o.all && k.fresh:
		return nil, nil
	case !o.all && o.check && k.have == nil:
		return nil, fmt.Errorf("check %s: spv/%s is missing, run ./build.sh shaders", k.Name, k.file())
	case !o.all && o.check:
		return nil, fmt.Errorf("check %s: by spv.sum, spv/%s was not made from %s and its includes as they are, run ./build.sh shaders", k.Name, k.file(), k.Source)
	case k.matrices() && o.newer == "" && o.all:
		return nil, nil
	case k.matrices() && o.newer == "":
		return nil, fmt.Errorf("compile %s: its sources changed, and it has cooperative matrices: want -glslc-newer", k.Name)
	}
	if made, err = compile(o, k.Kernel); err != nil {
		return nil, fmt.Errorf("compile %s: %w", k.Name, err)
	}
	switch {
	case !o.check:
		return made, os.WriteFile(filepath.Join(o.dir, "spv", k.file()), made, 0o644)
	case !bytes.Equal(k.have, made):
		return made, fmt.Errorf("check %s: spv/%s (%d bytes) differs from what %s gives (%d bytes, first at byte %d), run ./build.sh shaders",
			k.Name, k.file(), len(k.have), k.Source, len(made), firstDifference(k.have, made))
	case !k.fresh:
		return made, fmt.Errorf("check %s: its line in spv.sum is not of these sources and this file, run ./build.sh shaders", k.Name)
	}
	return made, nil
}

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// stale finds compiled files and sums that no row asks for, and removes them unless checking.
func stale(o options, sums map[string]gensum.Sum) error {
	wanted := map[string]bool{}
	for _, k := range shaders.Kernels() {
		wanted[k.Module+".spv"] = true
	}
	files, err := filepath.Glob(filepath.Join(o.dir, "spv", "*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		switch {
		case wanted[filepath.Base(f)]:
		case o.check:
			errs = append(errs, fmt.Errorf("check spv/%s: no kernel in the table has this name, run ./build.sh shaders", filepath.Base(f)))
		default:
			errs = append(errs, os.Remove(f))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		switch {
		case wanted[name]:
		case o.check:
			errs = append(errs, fmt.Errorf("check spv.sum: no kernel in the table makes %s, run ./build.sh shaders", name))
		default:
			delete(sums, name)
		}
	}
	return errors.Join(errs...)
}
