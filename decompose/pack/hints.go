package pack

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	shardName = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})\.gguf$`)
	partName  = regexp.MustCompile(`(?i)\.gguf[._-](part|split)`)
)

// FolderHint is for a folder without a manifest: what it holds that could be run, or made a model of.
func FolderHint(dir string) string {
	names := list(dir)
	var shards, whole, parts, foreign []string
	for _, n := range names {
		m := shardName.FindStringSubmatch(n)
		switch ext := strings.ToLower(filepath.Ext(n)); {
		case m != nil:
			if m[2] == "00001" {
				shards = append(shards, n)
			}
		case ext == ".gguf":
			whole = append(whole, n)
		case partName.MatchString(n):
			parts = append(parts, n)
		case ext == ".safetensors" || ext == ".pth" || ext == ".pt" || strings.HasPrefix(n, "pytorch_model"):
			foreign = append(foreign, n)
		}
	}
	switch {
	case len(shards)+len(whole) == 1 && len(shards) == 1:
		return fmt.Sprintf("it holds the shards of a model: give the first one, %s", filepath.Join(dir, shards[0]))
	case len(shards)+len(whole) == 1:
		return fmt.Sprintf("it holds a GGUF: give that file, %s", filepath.Join(dir, whole[0]))
	case len(shards)+len(whole) > 1:
		return "it holds several models: give a file of one, such as " + filepath.Join(dir, append(shards, whole...)[0])
	case len(parts) > 0:
		return fmt.Sprintf("it holds parts of a GGUF that was cut (%s): join them, in order, into one file, as cat does on Linux and macOS or copy /b on Windows", parts[0])
	case len(foreign) > 0:
		return fmt.Sprintf("it holds a model in another format (%s): convert it to GGUF, as with llama.cpp's convert_hf_to_gguf.py, or download it as GGUF", foreign[0])
	}
	return "make one with: leat decompose MODEL.gguf OUTDIR"
}

// list is the names in a folder, or some where there are very many.
func list(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(10_000) // what was read before an error will do
	slices.Sort(names)
	return names
}

// insidePack says that a file which can't be opened as a model is part of a pack.
func insidePack(path string, err error) error {
	dir := filepath.Dir(path)
	if info, e := os.Stat(filepath.Join(dir, ManifestName)); e != nil || !info.Mode().IsRegular() {
		return err
	}
	return &withHint{err, fmt.Sprintf("it lies in a pack: give the pack's folder, %s", dir)}
}
