package e2e

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// knobs is a whole environment: small loads that end quickly.
func knobs(targets string) map[string]string {
	return map[string]string{
		"INSTANCE": "k6-1", "SEGMENT_SEQUENCE": "0,1", "TARGETS": targets,
		"CONNECT_TIMEOUT": "30000ms", "REQUEST_TIMEOUT": "60000ms", "KEEP_ALIVE": "true", "MAX_DURATION": "60000ms",
		"METHOD": "GET", "PATH": "/api/delay", "HANDLER_DELAY": "0ms", "RESPONSE_BYTES": "10",
		"USERS": "4", "ARRIVAL_GAP": "0ms", "CALLS": "1", "THINK_TIME": "0ms", "CLOSES_FIRST": "client",
		"SLOW_USERS": "2", "HEADER_INTERVAL": "100ms", "HEADER_DURATION": "800ms",
		"HALF_OPEN": "3", "HALF_OPEN_DURATION": "2500ms",
		"RATE_PER_SECOND": "20", "DURATION": "1000ms", "MAX_USERS": "10",
		"REQUESTS":  "10",
		"RAMP_HALF": "100ms", "RAMP_FULL": "900ms", "RAMP_HOLD": "0ms", "RAMP_DOWN": "500ms", "REJOIN": "false",
	}
}

func with(knobs map[string]string, changes ...string) map[string]string {
	changed := maps.Clone(knobs)
	for i := 0; i < len(changes); i += 2 {
		changed[changes[i]] = changes[i+1]
	}
	return changed
}

// run is a k6 that has ended, or is about to.
type run struct {
	command *exec.Cmd
	stderr  bytes.Buffer
	raw     string
	exit    int
}

// start runs a script, or a workload by its name, with the raw files in a folder of its own.
func start(t *testing.T, script string, knobs map[string]string, args ...string) *run {
	t.Helper()
	if filepath.Ext(script) == "" {
		script = filepath.Join("..", "workloads", script+".js")
	}
	return startIn(t, "", nil, script, knobs, args...)
}

// startIn does so in a folder, where k6 may read the script as its standard input, "-".
func startIn(t *testing.T, folder string, stdin io.Reader, script string, knobs map[string]string, args ...string) *run {
	t.Helper()
	r := &run{raw: t.TempDir()}
	all := []string{"run", "--quiet", "--no-usage-report", "--out", "connlab=" + r.raw}
	if !slices.Contains(args, "--address") {
		all = append(all, "--address", "")
	}
	r.command = exec.Command(k6Binary, append(append(all, args...), script)...)
	r.command.Env = append(os.Environ(), "K6_AUTO_EXTENSION_RESOLUTION=false")
	for name, value := range knobs {
		r.command.Env = append(r.command.Env, "CONNLAB_"+name+"="+value)
	}
	r.command.Dir, r.command.Stdin = folder, stdin
	r.command.Stdout, r.command.Stderr = io.Discard, &r.stderr
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.command.Process.Kill() })
	return r
}

// wait returns when k6 has ended.
func (r *run) wait(t *testing.T) *run {
	t.Helper()
	err := r.command.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	r.exit = r.command.ProcessState.ExitCode()
	return r
}

// eventually waits for what k6 is about to do, so long that only a hang takes longer, even on a busy machine.
func (r *run) eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			_ = r.command.Process.Kill()
			t.Fatalf("never: %s", what)
		}
	}
}

// completed is a run that k6 itself must have ended in order.
func completed(t *testing.T, script string, knobs map[string]string, args ...string) *run {
	t.Helper()
	r := start(t, script, knobs, args...).wait(t)
	if r.exit != 0 {
		t.Fatalf("k6 ended with exit code %d:\n%s", r.exit, &r.stderr)
	}
	return r
}

// freeAddress is one that refuses connections now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// begun is when the record began, which is before the load did.
func (r *run) begun(t *testing.T) int64 {
	t.Helper()
	return lines[dialLine](t, r.raw, "dials")[0].TimeUS
}
