package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"leat/shaders"
	"leat/tools/gensum"
)

// The compilers of the committed files; another release may give other, equally good code.
const (
	madeBy      = "shaderc 2023.2"
	madeByNewer = "shaderc 2025.2"
)

func compile(o options, k shaders.Kernel) ([]byte, error) {
	glslc := o.glslc
	if k.Needs&shaders.CoopMatrix != 0 {
		glslc = o.newer
	}
	cmd := exec.Command(glslc, arguments(k)...)
	cmd.Dir = o.dir
	var code, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &code, &talk
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(talk.String()))
	}
	marked, err := decorateFma(code.Bytes())
	if err != nil {
		return nil, err
	}
	return dropNames(marked)
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

// after is what changes the compiler's code.
//
//go:embed precise.go
var after []byte

// sourceTree reads shader sources with what they include, each file once.
type sourceTree struct {
	dir  string
	read map[string][][]byte // by file: its text and those of its includes
}

// hash names all that a kernel's code is made from: compiler, arguments, sources, what is changed after.
func (s *sourceTree) hash(k shaders.Kernel) (string, error) {
	by := madeBy
	if k.Needs&shaders.CoopMatrix != 0 {
		by = madeByNewer
	}
	texts, err := s.texts(k.Source)
	if err != nil {
		return "", fmt.Errorf("read the sources of %s: %w", k.Name, err)
	}
	parts := [][]byte{[]byte(by), after}
	for _, a := range arguments(k) {
		parts = append(parts, []byte(a))
	}
	return gensum.Hash(append(parts, texts...)...), nil
}

var include = regexp.MustCompile(`(?m)^\s*#\s*include\s*(.*)$`)

// texts returns a file and all that it may include, whatever is defined.
func (s *sourceTree) texts(name string) ([][]byte, error) {
	if texts, ok := s.read[name]; ok {
		return texts, nil
	}
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return nil, err
	}
	texts := [][]byte{[]byte(name), text}
	s.read[name] = texts // a file that includes itself is read once
	for _, m := range include.FindAllSubmatch(text, -1) {
		quoted := strings.TrimSpace(string(m[1]))
		file, ok := strings.CutPrefix(quoted, `"`)
		if file, _, closed := strings.Cut(file, `"`); ok && closed {
			more, err := s.texts(file)
			if err != nil {
				return nil, fmt.Errorf("%s includes %s: %w", name, file, err)
			}
			texts = append(texts, more...)
			continue
		}
		return nil, fmt.Errorf("%s includes %s, want a file's name in quotes", name, quoted)
	}
	s.read[name] = texts
	return texts, nil
}
