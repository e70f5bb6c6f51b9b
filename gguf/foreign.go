package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const headBytes = 512 // of a file that foreign is given

const convert = "convert the model to GGUF, as with llama.cpp's convert_hf_to_gguf.py, or download it as GGUF"

// beginnings are those of files that people meet in place of a GGUF.
var beginnings = []struct{ bytes, hint string }{
	{"version https://git-lfs", "this is a pointer of git-lfs: fetch the file that it stands for with git lfs pull"},
	{"<", "this is a web page: download the file itself, not the page about it"},
	{"PK\x03\x04", "this is a zip: unpack it, or if these are PyTorch weights " + convert},
	{"\x80\x02", "these are PyTorch weights: " + convert},
	{"\x89HDF", "these are weights in HDF5: " + convert},
	{"\x1f\x8b", "this is compressed by gzip: unpack it"},
	{"\x28\xb5\x2f\xfd", "this is compressed by zstd: unpack it"},
	{"\xfd7zXZ", "this is compressed by xz: unpack it"},
	{"7z\xbc\xaf", "this is a 7z archive: unpack it"},
	{"Rar!", "this is a rar archive: unpack it"},
	{"ggml", tooOld}, {"lmgg", tooOld}, {"tjgg", tooOld}, {"fmgg", tooOld}, {"algg", tooOld},
}

const tooOld = "this is a model from before GGUF: get or convert a newer one"

// foreign says what to do with a file that is no GGUF, by its first bytes.
func foreign(head []byte) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	for _, b := range beginnings {
		if bytes.HasPrefix(head, []byte(b.bytes)) || b.bytes == "<" && bytes.HasPrefix(text, []byte("<")) {
			return b.hint
		}
	}
	switch {
	case len(head) == 0:
		return "the file is empty: download or copy it again"
	case len(head) > 10 && head[8] == '{' && binary.LittleEndian.Uint64(head) < 1<<40:
		return "these are safetensors: " + convert
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return "this is a tar archive: unpack it"
	case len(bytes.Trim(head, "\x00")) == 0:
		return "the file begins with zeros: its download is not finished, or failed"
	case isText(text):
		line, _, _ := strings.Cut(string(text), "\n")
		return fmt.Sprintf("this is text, perhaps an error in place of a download: %.80q", line)
	}
	return "it may be a part of a model that was cut, or a model in another format: join its parts, or " + convert
}

func isText(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	for i, r := range string(head) {
		if !unicode.IsPrint(r) && !unicode.IsSpace(r) && (r != utf8.RuneError || i < len(head)-utf8.UTFMax) {
			return false
		}
	}
	return true
}

var (
	// name.gguf.part1of2, name.gguf-split-a, name.gguf.001, name-part-b: cut by split, to be joined by cat.
	cutName = regexp.MustCompile(`(?i)^(.*?)[._-](?:part[._-]?\d+(?:[._-]?of[._-]?\d+)?|part[._-]?[a-z]{1,2}|split[._-]?(?:[a-z]{1,2}|\d+)|\d{3}|a[a-z])$`)
	// What browsers and tools call a file until it is whole.
	halfName = regexp.MustCompile(`(?i)\.(part|partial|incomplete|crdownload|download|tmp|temp|aria2|opdownload|!qb|!ut|filepart)$`)
)

// unfinished says what a file's name, or what lies beside it, tells of a file that can't be read.
func unfinished(path string) string {
	base := filepath.Base(path)
	if halfName.MatchString(base) {
		return "its name is that of an unfinished download: let it finish, or start it again"
	}
	if m := cutName.FindStringSubmatch(base); m != nil && strings.Contains(strings.ToLower(m[1]), "gguf") {
		return fmt.Sprintf("its name is that of one part of a file that was cut: join all parts, in order, into %s, as cat does on Linux and macOS or copy /b on Windows", m[1])
	}
	for _, suffix := range []string{".aria2", ".part", ".st"} {
		if _, err := os.Stat(path + suffix); err == nil {
			return fmt.Sprintf("%s lies beside it: the download is not finished", base+suffix)
		}
	}
	return ""
}
