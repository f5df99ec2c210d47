package procfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var units = Units{TicksPerSecond: 100, PageBytes: 4096}

func TestProcessesAreThoseOutsideTheCollectorsOwnContainer(t *testing.T) {
	reader := open(t, "testdata/proc")
	for range 2 { // the second time from what is known of them
		got, err := reader.Processes(nil)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b Process) int { return a.PID - b.PID })
		want := []Process{
			{PID: 40, Comm: "java", CPUms: 3000, RSSkB: 262144, Threads: 42, OpenFiles: -1, OpenFilesLimit: -1, started: 200},
			{PID: 41, Comm: "nginx) (w", CPUms: 70, RSSkB: 4096, Threads: 1, OpenFiles: -1, OpenFilesLimit: -1, started: 201},
			{PID: 42, Comm: "nginx", CPUms: 0, RSSkB: 2048, Threads: 1, OpenFiles: 3, OpenFilesLimit: 1024, started: 202},
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestAnIdThatIsUsedAgainIsAnotherProcess(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/proc")); err != nil {
		t.Fatal(err)
	}
	reader := open(t, root)
	if _, err := reader.Processes(nil); err != nil {
		t.Fatal(err)
	}
	// The id of the collector's init comes back as a process of the role.
	stat, err := os.ReadFile("testdata/proc/42/stat")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "1/stat"), strings.Replace(string(stat), "42 (", "1 (", 1))
	write(t, filepath.Join(root, "1/cgroup"), "0::/../8c5b4a\n")
	got, err := reader.Processes(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(got, func(p Process) bool { return p.PID == 1 && p.Comm == "nginx" }) {
		t.Errorf("process 1 is missing in %+v", got)
	}
}

func TestAProcessIsNobodysWhileRuncMakesIt(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/proc")); err != nil {
		t.Fatal(err)
	}
	reader := open(t, root)
	// A command in the collector's container begins outside of its control group.
	stat, err := os.ReadFile("testdata/proc/7/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, moment := range []struct{ comm, cgroup string }{
		{"runc:[1:CHILD]", "0::/../../init.scope\n"}, {"runc:[2:INIT]", "0::/\n"}, {"collector", "0::/\n"},
	} {
		write(t, filepath.Join(root, "7/stat"), strings.Replace(string(stat), "collector", moment.comm, 1))
		write(t, filepath.Join(root, "7/cgroup"), moment.cgroup)
		got, err := reader.Processes(nil)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(got, func(p Process) bool { return p.PID == 7 }) {
			t.Errorf("as %s it counts as the role's: %+v", moment.comm, got)
		}
	}
}

func TestAProcessThatEndedBeforeItWasSeenIsNobodys(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/proc")); err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("testdata/proc/7/stat")
	if err != nil {
		t.Fatal(err)
	}
	reader := open(t, root)
	// A health check that nobody has waited for yet is in no control group any more.
	write(t, filepath.Join(root, "7/stat"), strings.Replace(string(stat), ") S ", ") Z ", 1))
	write(t, filepath.Join(root, "7/cgroup"), "0::/../..\n")
	got, err := reader.Processes(nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(got, func(p Process) bool { return p.PID == 7 }) {
		t.Errorf("it counts as the role's: %+v", got)
	}
}

func TestHostSumsEachKindOfTimeOnce(t *testing.T) {
	got, err := open(t, "testdata/proc").Host()
	if err != nil {
		t.Fatal(err)
	}
	// Guest time stands in user time already.
	want := Host{CPUTotalMS: (1000 + 20 + 300 + 40000 + 500 + 6 + 70 + 8) * 10, CPUIdleMS: (40000 + 500) * 10}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheRealProcKnowsThisProcess(t *testing.T) {
	real, err := KernelUnits()
	if err != nil {
		t.Fatal(err)
	}
	reader, err := Open("/proc", real)
	if err != nil {
		t.Fatal(err)
	}
	process, own, err := reader.process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !own || process.RSSkB <= 0 || process.Threads < 1 {
		t.Errorf("own %t, %+v", own, process)
	}
	if open := reader.openFiles(os.Getpid()); open < 3 {
		t.Errorf("%d open files", open)
	}
	if reader.openFiles(1<<22+1) != -1 {
		t.Error("a process that is not there has open files")
	}
}

func TestBrokenTextIsRefused(t *testing.T) {
	for _, text := range []string{"", "1 java S", "x (java) S 0", "1 (java) S 0 1", "1 (j) S 0 1 1 0 -1 0 0 0 0 0 a 0 0 0 20 0 1 0 5 6 7"} {
		if _, err := parseProcess([]byte(text), units); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	for _, text := range []string{"", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "cpu  1 2 three 4 5 6 7 8"} {
		if _, err := parseHost([]byte(text), units); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if _, err := Open(t.TempDir(), units); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder gave %v", err)
	}
}

func FuzzParseProcess(f *testing.F) {
	for _, pid := range []string{"40", "41"} {
		text, err := os.ReadFile(filepath.Join("testdata/proc", pid, "stat"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = parseProcess(text, units) })
}

func FuzzParseHost(f *testing.F) {
	f.Add([]byte("cpu  1 2 3 4 5 6 7 8 9 10\n"))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = parseHost(text, units) })
}

func open(t *testing.T, root string) *Reader {
	t.Helper()
	reader, err := Open(root, units)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
