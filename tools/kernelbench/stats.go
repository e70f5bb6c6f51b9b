package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"leat/internal/kernels"
	"leat/vk"
)

// tell prints what the driver made of the pipelines that were built since it was last asked, and keeps its texts.
func (d *device) tell(o *options, out io.Writer) error {
	if !o.stats && o.ir == "" {
		return nil
	}
	for _, b := range d.kernels.Built() {
		if d.told[b.Pipeline] {
			continue
		}
		if d.told == nil {
			d.told = map[*vk.Pipeline]bool{}
		}
		d.told[b.Pipeline] = true
		list, err := b.Pipeline.Executables()
		if err != nil {
			return err
		}
		if o.stats {
			for _, line := range statLines(b, list) {
				fmt.Fprintln(out, line)
			}
		}
		if err := keepTexts(o.ir, b, list); err != nil {
			return err
		}
	}
	return nil
}

// statLines is a comment for each executable.
func statLines(b kernels.Pipeline, list []vk.Executable) []string {
	title := strings.TrimSpace("# " + b.Name + " " + b.Spec)
	if len(list) == 0 {
		return []string{title + ": the driver does not say"}
	}
	var lines []string
	for _, e := range list {
		words := []string{fmt.Sprintf("subgroup=%d", e.SubgroupSize)}
		for _, s := range e.Statistics {
			words = append(words, strings.ReplaceAll(s.Name, " ", "_")+"="+s.Value)
		}
		lines = append(lines, title+": "+strings.Join(words, " "))
	}
	return lines
}

// keepTexts writes what the driver says of the stages of a compile into files of the folder.
func keepTexts(folder string, b kernels.Pipeline, list []vk.Executable) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("keep the driver's texts: %w", err)
	}
	for i, e := range list {
		for j, t := range e.Texts {
			ext := ".txt"
			if t.Binary {
				ext = ".bin"
			}
			name := fileName(fmt.Sprintf("%s %s %d.%d %s", b.Name, b.Spec, i, j, t.Name)) + ext
			if err := os.WriteFile(filepath.Join(folder, name), t.Data, 0o644); err != nil {
				return fmt.Errorf("keep the driver's texts: %w", err)
			}
		}
	}
	return nil
}

// fileName keeps of s what any file system takes.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || r == '=' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '-'
	}, s)
}
