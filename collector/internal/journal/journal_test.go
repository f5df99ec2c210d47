package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"connlab/collector/internal/netns"
)

func TestMain(m *testing.M) { netns.TestMain(m) }

func TestAFileHoldsWhatWasAppendedAndNoMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.jsonl")
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 9999) + "\n"
	for range 100 { // well past the first reserve
		if err := file.Append([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != strings.Repeat(line, 100) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	if kept := stat.Blocks*512 - stat.Size; kept > 64<<10 {
		t.Errorf("%d bytes of the reserve were kept", kept)
	}
}

func TestAFileThatExistsIsNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.jsonl")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v", err)
	}
}

// smallDisk is one of 1 MiB.
func smallDisk(t *testing.T) (folder string) {
	t.Helper()
	netns.Require(t) // a mount takes the same privilege
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, 0) })
	return disk
}

func TestAFullDiskIsToldWhileALastLineHasRoom(t *testing.T) {
	disk := smallDisk(t)
	path := filepath.Join(disk, "lines.jsonl")
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const line = "one line of many\n"
	lines := 0
	for err == nil {
		err = file.Append([]byte(line))
		lines++
	}
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	// Something else fills the disk to the last byte.
	_ = os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 2<<20), 0o600)
	const last = "the last line\n"
	if err := file.AppendLast([]byte(last)); err != nil {
		t.Errorf("the last line had no room: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != strings.Repeat(line, lines)+last {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestALastLineStandsApartFromHalfOfOne(t *testing.T) {
	disk := smallDisk(t)
	path, filler := filepath.Join(disk, "lines.jsonl"), filepath.Join(disk, "filler")
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filler, make([]byte, 256<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	// One line that is larger than the disk.
	if err := file.Append([]byte(strings.Repeat("x", 2<<20) + "\n")); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("error %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for _, last := range []string{"the last line\n", "and one more\n"} {
		if err := file.AppendLast([]byte(last)); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(text), "x\nthe last line\nand one more\n") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
