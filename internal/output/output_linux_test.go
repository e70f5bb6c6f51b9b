package output

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stands describes what is under a name, so that a test can tell whether it is still that.
func stands(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "nothing"
	}
	if err != nil {
		t.Fatal(err)
	}
	text := info.Mode().String()
	switch {
	case info.Mode().IsRegular():
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text + " " + string(data)
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path)
		return text + " " + target
	}
	return text
}

func put(t *testing.T, path, text string, perm fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestKinds writes to each kind of thing that a name may stand for, in a folder of its own.
func TestKinds(t *testing.T) {
	unix.Umask(0o022)
	for name, tt := range map[string]struct {
		make func(t *testing.T) // in the test's folder
		path string
		want map[string]string // what stands there afterwards
	}{
		"nothing yet":  {nil, "out", map[string]string{"out": "-rw-r--r-- new"}},
		"a file":       {func(t *testing.T) { put(t, "out", "old", 0o640) }, "out", map[string]string{"out": "-rw-r----- new"}},
		"an own file":  {func(t *testing.T) { put(t, "out", "old", 0o600) }, "out", map[string]string{"out": "-rw------- new"}},
		"a dash below": {nil, "./-", map[string]string{"-": "-rw-r--r-- new"}},
		"a link": {func(t *testing.T) { put(t, "file", "old", 0o604); must(t, os.Symlink("file", "out")) }, "out",
			map[string]string{"out": "Lrwxrwxrwx file", "file": "-rw----r-- new"}},
		"a link to a link": {func(t *testing.T) {
			put(t, "file", "old", 0o644)
			must(t, os.Symlink("file", "one"))
			must(t, os.Symlink("one", "out"))
		}, "out",
			map[string]string{"out": "Lrwxrwxrwx one", "one": "Lrwxrwxrwx file", "file": "-rw-r--r-- new"}},
		"a link to nothing yet": {func(t *testing.T) { must(t, os.Mkdir("sub", 0o755)); must(t, os.Symlink("sub/file", "out")) }, "out",
			map[string]string{"out": "Lrwxrwxrwx sub/file", "sub/file": "-rw-r--r-- new"}},
		"a link to a folder's file": {func(t *testing.T) { must(t, os.Mkdir("sub", 0o755)); must(t, os.Symlink("sub", "way")) }, "way/out",
			map[string]string{"way": "Lrwxrwxrwx sub", "sub/out": "-rw-r--r-- new"}},
		"a null device": {func(t *testing.T) { device(t, "out") }, "out", map[string]string{"out": "Dcrw-r--r--"}},
		"a link to a device": {func(t *testing.T) { device(t, "null"); must(t, os.Symlink("null", "out")) }, "out",
			map[string]string{"out": "Lrwxrwxrwx null", "null": "Dcrw-r--r--"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if tt.make != nil {
				tt.make(t)
			}
			must(t, Check(tt.path, Options{}))
			must(t, Write(tt.path, []byte("new"), Options{}))
			for path, want := range tt.want {
				if got := stands(t, path); got != want {
					t.Errorf("%s is %s, want %s", path, got, want)
				}
			}
			left(t, ".")
		})
	}
}

// device makes a node that drops what is written to it.
func device(t *testing.T, path string) {
	t.Helper()
	if err := mknod(path, 1, 3); err != nil {
		t.Skipf("make a device node: %v (root alone may)", err)
	}
}

func mknod(path string, major, minor uint32) error {
	return unix.Mknod(path, unix.S_IFCHR|0o644, int(unix.Mkdev(major, minor)))
}

// left fails where a temporary file is left.
func left(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, partialSuffix) {
			t.Errorf("%s is left", path)
		}
		return err
	}))
}

// TestPipe reads what is written to a pipe, directly and over a link; both stand afterwards.
func TestPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, unix.Mkfifo("pipe", 0o600))
	must(t, os.Symlink("pipe", "link"))
	for _, path := range []string{"pipe", "link"} {
		got := make(chan string)
		go func() {
			data, err := os.ReadFile("pipe")
			if err != nil {
				t.Error(err)
			}
			got <- string(data)
		}()
		must(t, Check(path, Options{})) // must not wait for a reader
		must(t, Write(path, []byte("new"), Options{}))
		if text := <-got; text != "new" {
			t.Errorf("%s: read %q", path, text)
		}
	}
	if stands(t, "pipe") != "prw-------" || stands(t, "link") != "Lrwxrwxrwx pipe" {
		t.Errorf("pipe is %s, link is %s", stands(t, "pipe"), stands(t, "link"))
	}
}

// TestFullDevice: a device that takes nothing is an error, and is still there.
func TestFullDevice(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := mknod("full", 1, 7); err != nil {
		t.Skipf("make a device node: %v (root alone may)", err)
	}
	if err := Write("full", []byte("new"), Options{}); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "full") {
		t.Errorf("found %v, wanted ENOSPC and the name", err)
	}
	if got := stands(t, "full"); got != "Dcrw-r--r--" {
		t.Errorf("the device is %s", got)
	}
}

// TestRefuses: what the command reads stays as it is, by whatever name it is meant; so does what can't be written.
func TestRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		path string
		want string // part of the error
	}{
		"itself":                {"model", "this command reads it"},
		"by another spelling":   {"./sub/../model", "this command reads it, as model"},
		"over a link":           {"link", "this command reads it, as model"},
		"over a chain of links": {"chain", "this command reads it, as model"},
		"a hard link":           {"hard", "this command reads it, as model"},
		"another of its files":  {"shard", "this command reads it"},
		"read by way of a link": {"text", "this command reads it, as textlink"},
		"a folder":              {"sub", "it is a folder"},
		"a folder with a slash": {"sub/", "it is a folder"},
		"a link in a circle":    {"round", "too many levels of symbolic links"},
		"in no folder":          {"none/out", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, f := range []string{"model", "shard", "text"} {
				put(t, f, "whole", 0o644)
			}
			must(t, os.Mkdir("sub", 0o755))
			must(t, os.Link("model", "hard"))
			for link, to := range map[string]string{"link": "model", "chain": "link", "textlink": "text", "round": "round"} {
				must(t, os.Symlink(to, link))
			}
			o := Options{Inputs: []string{"model", "shard", "textlink", "missing"}}
			for way, err := range map[string]error{
				"Check": Check(tt.path, o), "Write": Write(tt.path, []byte("new"), o), "Create": func() error { _, err := Create(tt.path, o); return err }(),
			} {
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "write "+tt.path) {
					t.Errorf("%s: found %v, wanted %q of write %s", way, err, tt.want, tt.path)
				}
			}
			for _, f := range []string{"model", "shard", "text", "hard"} {
				if got := stands(t, f); got != "-rw-r--r-- whole" {
					t.Errorf("%s is %s", f, got)
				}
			}
			left(t, ".")
		})
	}
}

// TestBecomesInput: an input that takes a file's place while that is written is not replaced.
func TestBecomesInput(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "model", "whole", 0o644)
	f, err := Create("out", Options{Inputs: []string{"model"}})
	must(t, err)
	must(t, os.Link("model", "out"))
	if err := f.Commit(); err == nil {
		t.Error("it was replaced")
	}
	if got := stands(t, "model"); got != "-rw-r--r-- whole" {
		t.Errorf("the model is %s", got)
	}
	left(t, ".")
}

// TestUnfinished: what stood there stays until the new file is whole, and where it fails.
func TestUnfinished(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "out", "old", 0o644)
	failed := errors.New("no")
	err := Fill("out", Options{}, func(w io.Writer) error {
		if _, err := w.Write(make([]byte, 3*bufferBytes)); err != nil {
			return err
		}
		if got := stands(t, "out"); got != "-rw-r--r-- old" {
			t.Errorf("while it is written it is %s", got)
		}
		return failed
	})
	if err != failed {
		t.Error(err)
	}
	if got := stands(t, "out"); got != "-rw-r--r-- old" {
		t.Errorf("it is %s", got)
	}
	left(t, ".")
}

// TestMounted: a file that can't be replaced, as one that is mounted into a container, is written in place.
func TestMounted(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "source", "old, and longer", 0o640)
	put(t, "out", "", 0o644)
	if err := unix.Mount("source", "out", "", unix.MS_BIND, ""); err != nil {
		t.Skipf("mount a file: %v (root alone may)", err)
	}
	t.Cleanup(func() { _ = unix.Unmount("out", 0) })
	must(t, Write("out", []byte("new"), Options{}))
	for _, path := range []string{"out", "source"} {
		if got := stands(t, path); got != "-rw-r----- new" {
			t.Errorf("%s is %s", path, got)
		}
	}
	left(t, ".")
}

// TestStdout: "-" is standard output, and so is a path that leads there.
func TestStdout(t *testing.T) {
	t.Chdir(t.TempDir())
	var out strings.Builder
	must(t, Check(Stdout, Options{}))
	must(t, Write(Stdout, []byte("new"), Options{Stdout: &out}))
	if out.String() != "new" || stands(t, Stdout) != "nothing" {
		t.Errorf("stdout has %q, the file of that name is %s", out.String(), stands(t, Stdout))
	}
	put(t, "redirected", "", 0o644)
	f, err := os.OpenFile("redirected", os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	before := os.Stdout
	os.Stdout = f
	defer func() { os.Stdout = before }()
	must(t, os.Symlink("redirected", "link"))
	for path, want := range map[string]bool{Stdout: true, "redirected": true, "link": true, "other": false, ".": false} {
		if IsStdout(path) != want {
			t.Errorf("IsStdout(%q) is %v", path, !want)
		}
	}
}

func TestSame(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "a", "", 0o644)
	must(t, os.Mkdir("sub", 0o755))
	must(t, os.Symlink("new", "link"))
	must(t, os.Link("a", "hard"))
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true}, {"a", "hard", true}, {"a", "./a", true}, {"a", "new", false}, {"new", "sub/../new", true}, {"new", "sub/new", false},
		{"link", "new", true}, {Stdout, Stdout, true}, {Stdout, "./-", false}, {os.DevNull, os.DevNull, false},
	} {
		if Same(tt.a, tt.b) != tt.want {
			t.Errorf("Same(%q, %q) is %v", tt.a, tt.b, !tt.want)
		}
	}
}
