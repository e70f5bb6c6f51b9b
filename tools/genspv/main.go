package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"leat/shaders"

	"golang.org/x/sync/errgroup"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct {
	dir, glslc, newer, name string
	check                   bool
}

func run(args []string, out, errw io.Writer) int {
	var o options
	fs := flag.NewFlagSet("genspv", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.StringVar(&o.dir, "dir", "", "folder of the sources (default: the package's, found from here)")
	fs.StringVar(&o.glslc, "glslc", "glslc", "compiler to run; the committed files are made by Debian 12's 2023.2")
	fs.StringVar(&o.newer, "glslc-newer", "", "compiler of the kernels with cooperative matrices, made by Debian 13's 2025.2; without it they are left as they are")
	fs.StringVar(&o.name, "name", "", "only kernels whose name begins with this")
	fs.BoolVar(&o.check, "check", false, "write nothing; exit 1 if a committed file differs")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if err := generate(o, out); err != nil {
		fmt.Fprintln(errw, "genspv: error:", err)
		return 1
	}
	return 0
}

func generate(o options, out io.Writer) error {
	if o.dir == "" {
		dir, err := findDir()
		if err != nil {
			return err
		}
		o.dir = dir
	}
	var list []shaders.Kernel
	for _, k := range shaders.Kernels() {
		if strings.HasPrefix(k.Name, o.name) && (k.Variant != "coopmat" || o.newer != "") {
			list = append(list, k)
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("no kernel's name begins with %q", o.name)
	}
	if err := os.MkdirAll(filepath.Join(o.dir, "spv"), 0o755); err != nil {
		return err
	}
	errs := make([]error, len(list)) // each kernel's, so that one run shows all
	var g errgroup.Group
	g.SetLimit(runtime.NumCPU())
	for i, k := range list {
		g.Go(func() error {
			errs[i] = one(o, k)
			return nil
		})
	}
	g.Wait()
	if o.name == "" {
		errs = append(errs, stale(o, shaders.Kernels()))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	verb := "wrote"
	if o.check {
		verb = "checked"
	}
	fmt.Fprintf(out, "%s %d kernels\n", verb, len(list))
	return nil
}

// findDir looks for shaders/ in this folder and those above, or takes this folder if it is that.
func findDir() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for start := at; ; {
		for _, dir := range []string{at, filepath.Join(at, "shaders")} {
			if _, err := os.Stat(filepath.Join(dir, "mul_mat.comp")); err == nil {
				return dir, nil
			}
		}
		up := filepath.Dir(at)
		if up == at {
			return "", fmt.Errorf("find the shader sources: no shaders folder in or above %s, want -dir", start)
		}
		at = up
	}
}

// one compiles a kernel and writes or compares it.
func one(o options, k shaders.Kernel) error {
	made, err := compile(o, k)
	if err != nil {
		return fmt.Errorf("compile %s: %w", k.Name, err)
	}
	path := filepath.Join(o.dir, "spv", k.Name+".spv")
	if !o.check {
		return os.WriteFile(path, made, 0o644)
	}
	have, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("check %s: spv/%s.spv is missing, run genspv", k.Name, k.Name)
	case err != nil:
		return err
	case !bytes.Equal(have, made):
		return fmt.Errorf("check %s: spv/%s.spv (%d bytes) differs from what %s gives (%d bytes, first at byte %d), run genspv",
			k.Name, k.Name, len(have), k.Source, len(made), firstDifference(have, made))
	}
	return nil
}

func compile(o options, k shaders.Kernel) ([]byte, error) {
	glslc := o.glslc
	if k.Variant == "coopmat" {
		glslc = o.newer
	}
	cmd := exec.Command(glslc, arguments(k)...)
	cmd.Dir = o.dir
	var code, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &code, &talk
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(talk.String()))
	}
	return decorateFma(code.Bytes())
}

// arguments says all that the sources do not: sizes and defaults live in the table alone.
// No -O: spirv-opt unrolls loops, and the copies lose NoContraction.
func arguments(k shaders.Kernel) []string {
	args := []string{"--target-env=vulkan1.2", "-fshader-stage=comp", "-Werror"}
	if !slices.ContainsFunc(k.Spec, func(s shaders.SpecConst) bool { return s.Name == "LANES" }) {
		args = append(args, fmt.Sprintf("-DLANES=%d", k.LocalSize))
	}
	for _, s := range k.Spec {
		args = append(args, fmt.Sprintf("-DDEFAULT_%s=%d", s.Name, s.Default))
	}
	for _, d := range k.Defines {
		args = append(args, "-D"+d)
	}
	return append(args, "-o", "-", k.Source)
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

// stale finds compiled files that no row asks for, and removes them unless checking.
func stale(o options, list []shaders.Kernel) error {
	wanted := map[string]bool{}
	for _, k := range list {
		wanted[k.Name+".spv"] = true
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
			errs = append(errs, fmt.Errorf("check spv/%s: no kernel in the table has this name, run genspv", filepath.Base(f)))
		default:
			errs = append(errs, os.Remove(f))
		}
	}
	return errors.Join(errs...)
}
