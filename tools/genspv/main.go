package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct {
	dir, glslc, newer, name string
	check, all              bool
}

func run(args []string, out, errw io.Writer) int {
	var o options
	fs := flag.NewFlagSet("genspv", flag.ContinueOnError)
	fs.SetOutput(errw)
	fs.StringVar(&o.dir, "dir", "", "folder of the sources (default: the package's, found from here)")
	fs.StringVar(&o.glslc, "glslc", "glslc", "compiler to run; the committed files are made by Debian 12's 2023.2")
	fs.StringVar(&o.newer, "glslc-newer", "", "compiler of the kernels with cooperative matrices, made by Debian 13's 2025.2; without it -all leaves them out")
	fs.StringVar(&o.name, "name", "", "only kernels whose name begins with this")
	fs.BoolVar(&o.check, "check", false, "write nothing; exit 1 if a committed file is not made from these sources")
	fs.BoolVar(&o.all, "all", false, "compile every kernel, also those whose sources did not change")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if err := generate(o, out); err != nil {
		fmt.Fprintln(errw, "genspv: error:", err)
		return 1
	}
	return 0
}

// findDir looks for shaders/ in this folder and those above, or takes this folder if it is that.
func findDir() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for start := at; ; {
		for _, dir := range []string{at, filepath.Join(at, "shaders")} {
			if _, err := os.Stat(filepath.Join(dir, "mul_mat_vec.comp")); err == nil {
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
