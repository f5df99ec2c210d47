package procnet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReaderReadsAllFilesWhateverTheBuffer(t *testing.T) {
	for _, size := range []int{0, 1, 4037, 4038, 64 << 10} {
		reader, err := Open("testdata/linux-6.18/net")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Read(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, table := range reader.Tables() {
			total += len(table.Counters())
		}
		if want := 229 + 82 + 12 + 6; total != want {
			t.Errorf("%d counters with a buffer of %d bytes, want %d", total, size, want)
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestReaderSeesNewValuesInOpenFiles(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/unknown-counters/net")); err != nil {
		t.Fatal(err)
	}
	reader, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	for _, want := range []string{"1", "2"} {
		text := []byte("TcpExt: ListenDrops\nTcpExt: " + want + "\n")
		if err := os.WriteFile(filepath.Join(folder, "netstat"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := reader.Read(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		if got := reader.Tables()[0].Counters()[0].Value; got != int64(want[0]-'0') {
			t.Errorf("got %d, want %s", got, want)
		}
	}
}

func TestReaderDoesWithoutIPv6ButNotWithoutNetstat(t *testing.T) {
	reader, err := Open("testdata/without-ipv6/net")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(reader.Tables()); got != 3 {
		t.Errorf("%d tables, want 3", got)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder gave %v", err)
	}
}
