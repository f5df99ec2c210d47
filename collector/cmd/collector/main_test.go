package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"connlab/collector/internal/netns"
)

// asCollector marks a process of this test binary that runs as the collector itself.
const asCollector = "CONNLAB_TEST_IS_THE_COLLECTOR"

func TestMain(m *testing.M) {
	if os.Getenv(asCollector) != "" {
		main()
		return
	}
	netns.TestMain(m)
}

// collector is the program with these arguments; its environment holds these settings and no other CONNLAB_… .
func collector(settings []string, arguments ...string) *exec.Cmd {
	command := exec.Command("/proc/self/exe", arguments...)
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "CONNLAB_") {
			command.Env = append(command.Env, setting)
		}
	}
	command.Env = append(append(command.Env, settings...), asCollector+"=1")
	return command
}

// result runs the collector to its end.
func result(t *testing.T, settings []string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	command := collector(settings, arguments...)
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr = &out, &messages
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), out.String(), messages.String()
}

func TestWrongUseIsToldInOneWay(t *testing.T) {
	for _, test := range []struct {
		name      string
		arguments []string
		code      int
		want      string
	}{
		{"no command", nil, 2, "usage: collector COMMAND\n"},
		{"an unknown command", []string{"stop"}, 2, "usage: collector COMMAND\n"},
		{"an unknown flag", []string{"run", "--rate", "3"}, 2, "flag provided but not defined: -rate\n"},
		{"no address", []string{"http"}, 2, "usage: collector http [flags] URL\n"},
		{"help", []string{"run", "--help"}, 0, "Usage of run:\n"},
		{"nobody to ask", []string{"healthy", "--state", "/nowhere"}, 1, "collector: no collector runs here\n"},
		{"no setting", []string{"inspect", "--sysctl", "kernel.panic"}, 1, `collector: "kernel.panic": want the name of a network setting`},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := result(t, nil, test.arguments...)
			if code != test.code || stdout != "" || !strings.HasPrefix(stderr, test.want) {
				t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
			}
		})
	}
}

func TestBadSettingsAreNamedInOneLine(t *testing.T) {
	raw := t.TempDir()
	code, _, stderr := result(t, []string{"CONNLAB_ROLE=backend-1", "CONNLAB_RATE_HZ=many", "CONNLAB_CAPTURE=off"}, "run", "--raw", raw)
	const want = `collector: SAMPLER_RATE_HZ (in the container: CONNLAB_RATE_HZ): "many": want an integer from 1 to 100; ` +
		`CAPTURE_MAX_MB (in the container: CONNLAB_CAPTURE_MAX_MB): "": want an integer from 1 to 1048576` + "\n"
	if code != 1 || stderr != want {
		t.Errorf("exit code %d, %q, want %q", code, stderr, want)
	}
	if files, err := os.ReadDir(raw); err != nil || len(files) > 0 {
		t.Errorf("it left %v (%v)", files, err)
	}
}

func TestHTTPPrintsTheBodyAndFailsFrom400On(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil || request.URL.Path == "/bad" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, request.Method+" "+string(body)+" "+request.Header.Get("Content-Type"))
	}))
	defer server.Close()
	code, stdout, stderr := result(t, nil, "http", "--method", "PATCH", "--body", `{"paused":false}`, server.URL+"/v1/status")
	if code != 0 || stdout != `PATCH {"paused":false} application/json` || stderr != "" {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, stderr = result(t, nil, "http", server.URL+"/bad")
	if want := "collector: GET " + server.URL + "/bad answered 400 Bad Request\n"; code != 1 || stdout != "GET  " || stderr != want {
		t.Errorf("exit code %d, %q, %q, want %q", code, stdout, stderr, want)
	}
}

func TestHTTPRepeatsARequestOnConnectionsOfTheirOwnUntilOneFails(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/bad" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprint(w, connections.Load())
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	for _, test := range []struct {
		path string
		code int
		want string
	}{{"/", 0, "3"}, {"/bad", 1, "4"}} {
		code, stdout, stderr := result(t, nil, "http", "--times", "3", server.URL+test.path)
		if code != test.code || stdout != test.want {
			t.Errorf("%s: exit code %d, %q, %q", test.path, code, stdout, stderr)
		}
	}
}

func TestHTTPAsksOverTLSToo(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	defer server.Close()
	if code, stdout, stderr := result(t, nil, "http", server.URL); code != 0 || stdout != "here" {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, stderr := result(t, nil, "tls", server.Listener.Addr().String())
	if want := `{"oldest":"TLSv1.2","newest":"TLSv1.3","http2":false,"tickets":true}` + "\n"; code != 0 || stdout != want {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

func TestReadyWaitsForTheAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/up" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	for _, test := range []struct {
		settings []string
		code     int
		stderr   string
	}{
		{nil, 0, ""},
		{[]string{"CONNLAB_READY_URL=" + server.URL + "/up"}, 0, ""},
		{[]string{"CONNLAB_READY_URL=" + server.URL + "/down"}, 1, "did not answer 200 within 200ms"},
		{[]string{"CONNLAB_READY_URL=127.0.0.1"}, 1, "CONNLAB_READY_URL: "},
	} {
		code, _, stderr := result(t, test.settings, "ready", "--within", "200ms")
		if code != test.code || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%v: code %d, %q", test.settings, code, stderr)
		}
	}
}

func TestInspectTellsOfTheNamespace(t *testing.T) {
	netns.Require(t)
	code, stdout, stderr := result(t, nil, "inspect", "--sysctl", "net.ipv4.tcp_syn_retries", "--sysctl", "net.ipv4.no_such_setting")
	var got struct {
		Sysctls   map[string]*string
		Listeners []any
		Kernel    string
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("exit code %d, %q, %q: %v", code, stdout, stderr, err)
	}
	want, err := os.ReadFile(filepath.Join("/proc/sys/net/ipv4/tcp_syn_retries"))
	if err != nil {
		t.Fatal(err)
	}
	retries := got.Sysctls["net.ipv4.tcp_syn_retries"]
	missing, told := got.Sysctls["net.ipv4.no_such_setting"]
	if code != 0 || retries == nil || *retries != strings.TrimSpace(string(want)) || missing != nil || !told {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	if got.Listeners == nil || got.Kernel == "" {
		t.Errorf("%s", stdout)
	}
}
