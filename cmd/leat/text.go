package main

import (
	"fmt"
	"os"
)

// readText returns the text of -p, or the contents of -f (a file, or - for stdin);
// exactly one must be given.
func readText(a *app, text, file string) (string, error) {
	switch {
	case text != "" && file != "":
		return "", usageErrorf("-p and -f exclude each other")
	case file == "" && text == "":
		return "", usageErrorf("no text: give it with -p TEXT, or -f FILE (-f - reads stdin)")
	case file == "":
		return text, nil
	}
	in := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("read the text: %w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := readAll(in, maxText)
	if err != nil {
		return "", fmt.Errorf("read the text: %w", err)
	}
	return string(b), nil
}

// maxText bounds what is read into memory; no model's context comes near.
const maxText = 256 << 20
