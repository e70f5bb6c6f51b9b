package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"leat/tools/gensum"
)

// source is the generator itself. Of the registry the generated files name the version.
//
//go:embed *.go overlay.xml
var source embed.FS

// from names what the committed files are made from.
func from() (string, error) {
	entries, err := source.ReadDir(".")
	if err != nil {
		return "", err
	}
	var parts [][]byte
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := source.ReadFile(e.Name())
		if err != nil {
			return "", err
		}
		parts = append(parts, []byte(e.Name()), text)
	}
	return gensum.Hash(parts...), nil
}

func sumsPath(dir string) string { return filepath.Join(dir, "gen.sum") }

func writeSums(dir string, files []file) error {
	by, err := from()
	if err != nil {
		return err
	}
	sums := map[string]gensum.Sum{}
	for _, f := range files {
		sums[f.name] = gensum.Sum{From: by, Made: gensum.Hash(f.text)}
	}
	return gensum.Write(sumsPath(dir), sums)
}

// checkSums fails with every file in dir that this generator did not make: it needs no registry.
func checkSums(dir string) error {
	by, err := from()
	if err != nil {
		return err
	}
	sums, err := gensum.Read(sumsPath(dir))
	if err != nil {
		return err
	}
	var errs []error
	for name, sum := range sums {
		text, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err != nil:
			errs = append(errs, err)
		case sum.From != by:
			errs = append(errs, fmt.Errorf("%s was made by another state of tools/genvk, run ./build.sh binding", filepath.Join(dir, name)))
		case sum.Made != gensum.Hash(text):
			errs = append(errs, fmt.Errorf("%s is not what tools/genvk wrote, run ./build.sh binding", filepath.Join(dir, name)))
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "gen_*.go"))
	for _, path := range found {
		if _, ok := sums[filepath.Base(path)]; !ok {
			errs = append(errs, fmt.Errorf("%s has no line in %s, run ./build.sh binding", path, sumsPath(dir)))
		}
	}
	return errors.Join(append(errs, err)...)
}
