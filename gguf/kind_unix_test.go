//go:build unix

package gguf

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is no regular file is refused before it is opened: a pipe without a writer would wait for ever.
func TestOpenKinds(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.gguf")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	link := filepath.Join(dir, "link.gguf")
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	for path, want := range map[string]string{pipe: "a pipe", link: "a pipe", socket: "a socket", dir: "a directory", "/dev/null": "a device", "/dev/zero": "a device"} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, wanted one with %q", path, err, want)
		}
	}
	// A shard beside a regular one.
	if err := os.WriteFile(ShardPath(filepath.Join(dir, "m"), 0, 2), firstShard(2), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(ShardPath(filepath.Join(dir, "m"), 1, 2), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ShardPath(filepath.Join(dir, "m"), 0, 2)); err == nil || !strings.Contains(err.Error(), "a pipe") {
		t.Errorf("a pipe for a shard: error %v", err)
	}
}

func firstShard(n uint32) []byte {
	return head(0, 2).str(keySplitNo).u32(uint32(Uint32)).u32(0).str(keySplitCount).u32(uint32(Uint32)).u32(n).Bytes()
}
