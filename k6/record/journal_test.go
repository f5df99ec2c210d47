package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// opened is a journal that the test must close.
func opened(t *testing.T, fail func(error)) (journal *Journal, folder string) {
	t.Helper()
	journal, folder = new(Journal), t.TempDir()
	if err := journal.Open(folder, "k6-1", fail); err != nil {
		t.Fatal(err)
	}
	return journal, folder
}

func add(file *File, line string) {
	file.Append(func(lines []byte) []byte { return append(lines, line+"\n"...) })
}

func linesOf(t *testing.T, folder, name string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

func TestHeadersStandBeforeAnyLoad(t *testing.T) {
	journal, folder := opened(t, nil)
	if journal.Folder() != folder {
		t.Errorf("the journal's folder is %q", journal.Folder())
	}
	for _, name := range []string{"dials", "requests", "events"} {
		header := linesOf(t, folder, name+".jsonl")[0]
		if !strings.HasPrefix(header, `{"kind":"header","schema":"connlab.`+name+`/1","instance":"k6-1","time_us":`) {
			t.Errorf("%s.jsonl begins with %s", name, header)
		}
	}
	if live := linesOf(t, folder, "live.jsonl"); live[0] != "" {
		t.Errorf("live.jsonl begins with %q", live)
	}
	if err := journal.Close(); err != nil {
		t.Error(err)
	}
}

func TestLinesOfManyWritersStayWhole(t *testing.T) {
	const writers, each = 8, 500
	journal, folder := opened(t, nil)
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() {
			for n := range each {
				add(&journal.Events, fmt.Sprintf("%d of %d", n, writer))
				if n%100 == 0 {
					time.Sleep(flushPeriod / 4)
				}
			}
		})
	}
	all.Wait()
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	next := make([]int, writers)
	lines := linesOf(t, folder, "events.jsonl")[1:]
	for _, line := range lines {
		var n, writer int
		if _, err := fmt.Sscanf(line, "%d of %d", &n, &writer); err != nil || n != next[writer] {
			t.Fatalf("%q, where line %d of that writer should stand (%v)", line, next[writer], err)
		}
		next[writer]++
	}
	if len(lines) != writers*each {
		t.Errorf("%d lines of %d", len(lines), writers*each)
	}
}

func TestWithoutAnOpenJournalLinesAreDropped(t *testing.T) {
	var never Journal
	add(&never.Events, "before")
	if err := never.Close(); err != nil || never.Folder() != "" || len(never.Events.pending) != 0 {
		t.Errorf("%v, folder %q, %q", err, never.Folder(), never.Events.pending)
	}
	journal, folder := opened(t, nil)
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	add(&journal.Events, "after")
	if lines := linesOf(t, folder, "events.jsonl"); len(lines) != 1 || len(journal.Events.pending) != 0 {
		t.Errorf("%q, %q", lines, journal.Events.pending)
	}
}

// fullDisk takes only a part of each write, like a disk that becomes full.
type fullDisk struct{ taken int }

var errNoSpace = errors.New("no space left on device")

func (f *fullDisk) Write(lines []byte) (int, error) {
	f.taken += len(lines) / 2
	return len(lines) / 2, errNoSpace
}

func (f *fullDisk) Close() error { return nil }

func TestABrokenRecordIsReportedOnceAndNotContinued(t *testing.T) {
	failures := make(chan error, 10)
	journal, _ := opened(t, func(err error) { failures <- err })
	disk := new(fullDisk)
	journal.Events.open(disk)
	add(&journal.Events, "a line")
	if err := <-failures; !errors.Is(err, errNoSpace) {
		t.Errorf("it was told %v", err)
	}
	taken := disk.taken
	add(&journal.Events, "another")
	journal.Fail(errors.New("another reason"))
	if err := journal.Close(); !errors.Is(err, errNoSpace) {
		t.Errorf("Close returned %v", err)
	}
	if len(failures) != 0 {
		t.Errorf("it was told again: %v", <-failures)
	}
	if disk.taken != taken {
		t.Error("after a line that was cut came more")
	}
}

func TestARecordThatBreaksWithItsLastLinesIsNotWhole(t *testing.T) {
	journal, _ := opened(t, nil)
	journal.Events.open(new(fullDisk))
	add(&journal.Events, "the last line")
	if err := journal.Close(); !errors.Is(err, errNoSpace) {
		t.Errorf("Close returned %v", err)
	}
}
