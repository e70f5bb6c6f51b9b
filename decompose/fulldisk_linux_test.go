package decompose

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"leat/decompose/pack"
)

// A real full disk: a memory file system too small for the pack.
func TestFullDisk(t *testing.T) {
	x := newFixture(t, shape{layers: 8, dim: 512})
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("mounting a small tmpfs: %v (root alone may)", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	if x.total < 5<<20 {
		t.Fatalf("the model has %d bytes, the disk 4 MiB: wanted it to be too small", x.total)
	}
	x.out = filepath.Join(disk, "out")

	var short *SpaceError
	if err := x.broken(t, defaultHooks()); !errors.As(err, &short) {
		t.Fatalf("found %v, wanted the check before the first byte", err)
	}
	if entries, err := os.ReadDir(disk); err != nil || len(entries) > 0 {
		t.Fatalf("found %v left, %v", entries, err)
	}

	blind := defaultHooks() // as where another process takes the space meanwhile
	blind.free = func(string) (int64, error) { return math.MaxInt64, nil }
	err := x.broken(t, blind)
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("found %v, wanted ENOSPC", err)
	}
	wantHint(t, err, "free some space")
	wantHint(t, err, "the same command takes it up again")
	if !exists(x.out + pack.PartialSuffix) {
		t.Fatal("found no partial folder to resume from")
	}

	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	var resumed int64
	if _, err := Run(context.Background(), x.in, x.out, Options{Verify: true, Progress: func(p Progress) {
		if p.Stage == StageCopy {
			resumed = p.Resumed
		}
	}}); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, files(t, x.out), x.want)
	if resumed == 0 {
		t.Error("found nothing resumed")
	}
}
