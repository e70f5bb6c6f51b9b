package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"leat/decompose/pack"
	"leat/internal/output"
)

// result is a file that a flag asks for; path "" is none.
type result struct {
	flag, path string
	binary     bool // nothing for a terminal
}

// results are the files that a command was asked to write. A file named "-" is stdout; what the command would print there
// goes to stderr then.
type results struct {
	paths  []string // that were checked
	inputs []string
	stdout io.Writer
}

// newResults fails before long work where a file can't be written, would be one of the inputs, or is asked for twice.
func (a *app) newResults(inputs []string, list ...result) (*results, error) {
	r := &results{inputs: inputs, stdout: a.out}
	for i, x := range list {
		if x.path == "" {
			continue
		}
		for _, y := range list[:i] {
			if y.path != "" && output.Same(standard(x.path), standard(y.path)) {
				return nil, usageErrorf("--%s and --%s both name %s: each needs a file of its own", y.flag, x.flag, x.path)
			}
		}
		if standard(x.path) == output.Stdout {
			if x.binary && isTerminal(r.stdout) {
				return nil, usageErrorf("--%s: stdout is a terminal, and these bytes are no text: name a file, or redirect stdout", x.flag)
			}
			a.out = a.err
		}
		if err := output.Check(standard(x.path), output.Options{Inputs: inputs}); err != nil {
			return nil, err
		}
		r.paths = append(r.paths, x.path)
	}
	return r, nil
}

// standard gives all names of stdout the same one.
func standard(path string) string {
	if output.IsStdout(path) {
		return output.Stdout
	}
	return path
}

// options are those of a file that was checked.
func (r *results) options(path string) (output.Options, error) {
	if r == nil || !slices.Contains(r.paths, path) {
		return output.Options{}, fmt.Errorf("write %s: nobody checked it", path)
	}
	return output.Options{Inputs: r.inputs, Stdout: r.stdout}, nil
}

func (r *results) create(path string) (*output.File, error) {
	o, err := r.options(path)
	if err != nil {
		return nil, err
	}
	return output.Create(standard(path), o)
}

// fill writes one of the files. Where fill fails there is none, and what stood there stays.
func (r *results) fill(path string, fill func(io.Writer) error) error {
	o, err := r.options(path)
	if err != nil {
		return err
	}
	return output.Fill(standard(path), o, fill)
}

// later is a file that begins with the first byte written to it: when the model that writes it is loaded.
type later struct {
	r    *results
	path string
	f    *output.File // nil: nothing was written yet
	err  error
}

func (l *later) Write(b []byte) (int, error) {
	if l.f == nil && l.err == nil {
		l.f, l.err = l.r.create(l.path)
	}
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.f.Write(b)
	l.err = err
	return n, err
}

// finish puts the file in place where all of it was written.
func (l *later) finish() error {
	if l.f == nil {
		return l.err
	}
	defer l.f.Close()
	if l.err != nil {
		return l.err
	}
	return l.f.Commit()
}

// modelInputs are the files that a command with a MODEL reads, so that it writes over none of them: all of the model's, and
// others that were named.
func modelInputs(arg string, others ...string) []string {
	var inputs []string
	for _, path := range others {
		if path != "" && path != output.Stdout {
			inputs = append(inputs, path)
		}
	}
	path, err := modelPath(arg)
	if err != nil {
		return inputs // said when it is loaded
	}
	inputs = append(inputs, path)
	m, err := pack.Open(path)
	if err != nil {
		return inputs
	}
	defer m.Close()
	inputs = append(inputs, m.Paths()...)
	if m.IsPack {
		entries, _ := os.ReadDir(path) // its manifest and metadata, too
		for _, e := range entries {
			inputs = append(inputs, path+string(os.PathSeparator)+e.Name())
		}
	}
	return inputs
}

// finish ends what outlives a command's own code.
func (a *app) finish(err error) error {
	var errs []error
	for _, last := range a.last {
		errs = append(errs, last())
	}
	a.last = nil
	if more := errors.Join(errs...); more != nil {
		return errors.Join(err, more)
	}
	return err
}
