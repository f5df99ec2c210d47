package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestABadEnvironmentIsRefusedInOneLine(t *testing.T) {
	t.Parallel()
	bad := with(knobs("http://127.0.0.1:1"), "CONNECT_TIMEOUT", "30s")
	delete(bad, "CALLS")
	for _, log := range []string{"stderr", "file=" + filepath.Join(t.TempDir(), "k6.log")} {
		r := start(t, "users", bad, "--log-output", log).wait(t)
		if r.exit == 0 {
			t.Error("k6 ran")
		}
		if log == "stderr" {
			continue
		}
		// The extension reads its timeout before the workload reads its knobs.
		if line := "CONNLAB_CONNECT_TIMEOUT must be whole milliseconds such as 30000ms, not \"30s\""; !strings.Contains(r.stderr.String(), line) {
			t.Errorf("stderr lacks %q:\n%s", line, &r.stderr)
		}
		r = start(t, "users", with(bad, "CONNECT_TIMEOUT", "1000ms"), "--log-output", log).wait(t)
		if line := "CONNLAB_CALLS is missing"; !strings.Contains(r.stderr.String(), line) {
			t.Errorf("stderr lacks %q:\n%s", line, &r.stderr)
		}
	}
}

func TestALoadLongerThanAllowedIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, "long-polling", with(knobs("http://127.0.0.1:1"), "MAX_DURATION", "1000ms")).wait(t)
	if r.exit == 0 || !strings.Contains(r.stderr.String(), "CONNLAB_MAX_DURATION must be at least the 1500ms") {
		t.Errorf("exit code %d:\n%s", r.exit, &r.stderr)
	}
}

func TestRawFilesAreNeverOverwritten(t *testing.T) {
	t.Parallel()
	raw := t.TempDir()
	if err := os.WriteFile(filepath.Join(raw, "requests.jsonl"), []byte("kept\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "users", knobs("http://127.0.0.1:1"), "--out", "connlab="+raw).wait(t)
	if kept, _ := os.ReadFile(filepath.Join(raw, "requests.jsonl")); r.exit == 0 || string(kept) != "kept\n" ||
		!strings.Contains(r.stderr.String(), "requests.jsonl: file exists") {
		t.Errorf("exit code %d:\n%s", r.exit, &r.stderr)
	}
}

func TestAFolderThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	r := start(t, "users", knobs("http://127.0.0.1:1"), "--out", "connlab="+missing).wait(t)
	if r.exit == 0 || !strings.Contains(r.stderr.String(), "missing/dials.jsonl: no such file or directory") {
		t.Errorf("exit code %d:\n%s", r.exit, &r.stderr)
	}
}

func TestAnAbortedRunHasNoEndLines(t *testing.T) {
	t.Parallel()
	target := newBackend(t, 0).URL
	r := start(t, "users", with(knobs(target), "CALLS", "1000", "THINK_TIME", "50ms"))
	waitForLines(t, r, "requests.jsonl", 10)
	_ = r.command.Process.Signal(syscall.SIGTERM)
	r.wait(t)
	if record := r.record(t); r.exit != 105 || record.ended || len(record.closes) != len(record.dials) {
		t.Errorf("exit code %d, ended %v, %d dials, %d closes", r.exit, record.ended, len(record.dials), len(record.closes))
	}
}

func TestAKilledRunLosesLessThanASecond(t *testing.T) {
	t.Parallel()
	target := newBackend(t, 0).URL
	r := start(t, "users", with(knobs(target), "CALLS", "1000", "THINK_TIME", "50ms"))
	waitForLines(t, r, "requests.jsonl", 40)
	_ = r.command.Process.Kill()
	r.wait(t)
	if record := r.record(t); record.ended || len(record.requests) < 39 {
		t.Errorf("ended %v after %d requests", record.ended, len(record.requests))
	}
}

func waitForLines(t *testing.T, r *run, file string, wanted int) {
	t.Helper()
	r.eventually(t, fmt.Sprintf("%s has %d lines", file, wanted), func() bool {
		content, _ := os.ReadFile(filepath.Join(r.raw, file))
		return strings.Count(string(content), "\n") >= wanted
	})
}

// How the lab starts all instances at once: README.md states the same path, value and body.
func TestAPausedK6TellsWhenItIsReadyAndStartsWhenTold(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	r := start(t, "users", knobs(newBackend(t, 0).URL), "--paused", "--address", address)
	url := "http://" + address + "/v1/status"
	r.eventually(t, "k6 is ready", func() bool { return status(t, url) == 4 })
	time.Sleep(200 * time.Millisecond)
	if content, _ := os.ReadFile(filepath.Join(r.raw, "dials.jsonl")); strings.Count(string(content), "\n") != 1 {
		t.Errorf("k6 dialled while it was paused:\n%s", content)
	}
	request, err := http.NewRequest(http.MethodPatch, url, strings.NewReader(`{"data":{"attributes":{"paused":false}}}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	_ = answer.Body.Close()
	if record := r.wait(t).record(t); r.exit != 0 || len(record.requests) != 4 {
		t.Errorf("exit code %d after %d requests", r.exit, len(record.requests))
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		return -1
	}
	defer func() { _ = answer.Body.Close() }()
	var body struct {
		Data struct{ Attributes struct{ Status int } }
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body.Data.Attributes.Status
}

func TestAScriptThatGoesRoundTheExtensionIsStopped(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join("testdata", "no-extension.js"), knobs(newBackend(t, 0).URL)).wait(t)
	if r.exit != 120 || !strings.Contains(r.stderr.String(), "the script must import k6/x/connlab") {
		t.Errorf("exit code %d:\n%s", r.exit, &r.stderr)
	}
	if r.record(t).ended {
		t.Error("the record claims to be whole")
	}
}

func TestEventsOfAScript(t *testing.T) {
	t.Parallel()
	record := completed(t, filepath.Join("testdata", "events.js"), knobs(newBackend(t, 0).URL)).record(t)
	if len(record.events) != 2 || record.events[0].Name != "hello" || record.events[0].VU != 1 || record.events[1].Name != "refused" {
		t.Errorf("%+v", record.events)
	}
}
