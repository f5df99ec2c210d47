package e2e

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// startOwn runs a user's own script as the entry point does: k6 reads what wraps it, in the script's folder.
func startOwn(t *testing.T, script string, knobs map[string]string, args ...string) *run {
	t.Helper()
	absolute, err := filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	share, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	command := entryPoint(nil, "PATH="+os.Getenv("PATH"), "CONNLAB_SCRIPT="+absolute, "CONNLAB_K6_SHARE="+share)
	command.Args = append(command.Args, "wrap")
	text, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return startIn(t, filepath.Dir(absolute), bytes.NewReader(text), "-", knobs, args...)
}

// ownRun runs the script in testdata/own against a server.
func ownRun(t *testing.T, url string) (*run, record) {
	t.Helper()
	script := filepath.Join("testdata", "own", "checkout.js")
	r := startOwn(t, script, knobs(url), "--env", "BASE_URL="+url).wait(t)
	// 99: one of its checks fails always, so its threshold is crossed.
	if r.exit != 99 {
		t.Fatalf("k6 ended with exit code %d:\n%s", r.exit, &r.stderr)
	}
	return r, r.record(t)
}

func TestAUsersOwnScriptRunsUnchangedAndIsRecorded(t *testing.T) {
	t.Parallel()
	r, record := ownRun(t, newBackend(t, 0).URL)
	byName := map[string]int{}
	dials := map[int64]dialLine{}
	for _, dial := range record.dials {
		dials[dial.ID] = dial
	}
	for _, request := range record.requests {
		byName[request.Name]++
		group := map[bool]string{true: "::setup", false: "::shop"}[request.Name == "setup"]
		if request.Status != 200 || request.Dial == nil || dials[*request.Dial].VU != request.VU || request.Group != group {
			t.Errorf("%+v", request)
		}
		if (request.VU == 0) != (request.Name == "setup") {
			t.Errorf("whose request is this? %+v", request)
		}
	}
	if byName["setup"] != 1 || byName["home"] != 4 || byName["both"] != 8 || !record.ended {
		t.Errorf("requests by name: %v, ended %v", byName, record.ended)
	}
	short, err := os.ReadFile(filepath.Join(r.raw, "own-short.txt"))
	if err != nil || string(short) != "13 requests" {
		t.Errorf("its own summary: %q, %v", short, err)
	}
	var summary struct {
		Metrics map[string]struct {
			Thresholds map[string]struct{ OK bool }
		}
		RootGroup struct {
			Groups []struct {
				Checks []struct{ Passes, Fails int }
			}
		} `json:"root_group"`
	}
	text, err := os.ReadFile(filepath.Join(r.raw, "summary.json"))
	if err != nil || json.Unmarshal(text, &summary) != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if !summary.Metrics["http_req_failed{name:home}"].Thresholds["rate<0.01"].OK || summary.Metrics["checks"].Thresholds["rate>0.9"].OK {
		t.Errorf("thresholds: %s", text)
	}
	if checks := summary.RootGroup.Groups[0].Checks; len(checks) != 1 || checks[0].Passes != 4 {
		t.Errorf("checks: %+v", checks)
	}
}

func TestTLSAndHTTP2AreJoinedToTheirDials(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(delay))
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)
		_, record := ownRun(t, server.URL)
		ofDial := map[int64]int{}
		for _, request := range record.requests {
			if request.Dial == nil || request.Status != 200 {
				t.Fatalf("HTTP/2 %v: %+v", http2, request)
			}
			ofDial[*request.Dial]++
		}
		// Over HTTP/2 the two requests of a batch share their user's connection.
		if want := 3; http2 && len(record.dials) != want {
			t.Errorf("%d connections over HTTP/2, want %d: of setup() and of two users", len(record.dials), want)
		}
		if len(ofDial) == 0 || len(ofDial) > len(record.dials) || len(record.closes) != len(record.dials) {
			t.Errorf("HTTP/2 %v: %d connections, %d closed, requests on %d", http2, len(record.dials), len(record.closes), len(ofDial))
		}
	}
}

func TestAScriptThatCannotRunIsNamedBeforeTheRun(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]string{
		"import './nope.js'; export default () => {};": "./nope.js",
		"export default functio n() {}":                "bad.js: Line 1:24",
		"export const options = { vus: 'many' };":      "many",
	} {
		script := filepath.Join(t.TempDir(), "bad.js")
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := startOwn(t, script, knobs("http://127.0.0.1:1")).wait(t)
		if r.exit == 0 || !strings.Contains(r.stderr.String(), wanted) {
			t.Errorf("%s: exit code %d, %s", text, r.exit, &r.stderr)
		}
	}
}

func TestConnectionsOfWebSocketAndGRPCAreRecorded(t *testing.T) {
	t.Parallel()
	target := serve(t, func(conn *net.TCPConn) {
		readRequest(conn)
		_, _ = conn.Write([]byte("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"))
		_ = conn.Close()
	})
	address := strings.TrimPrefix(target, "http://")
	for text, attempts := range map[string]string{
		"import ws from 'k6/ws';": "ws.connect('ws://" + address + "/', () => {})",
		"import grpc from 'k6/net/grpc';\nconst client = new grpc.Client();": "client.connect('" + address +
			"', { plaintext: true, timeout: '1s' })",
	} {
		script := filepath.Join(t.TempDir(), "own.js")
		text += "\nexport default () => { try { " + attempts + "; } catch { /* it is not such a server */ } };\n"
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		record := startOwn(t, script, knobs(target)).wait(t).record(t)
		if len(record.dials) == 0 || record.dials[0].Remote == nil || *record.dials[0].Remote != address || record.dials[0].VU != 1 {
			t.Errorf("%s: %+v", text, record.dials)
		}
		if len(record.requests) != 1 || record.requests[0].ErrorCode == 0 || !record.ended {
			t.Errorf("%s: requests %+v, ended %v", text, record.requests, record.ended)
		}
	}
}

func TestK6IsAskedForOptionsWithTheScriptsEnvironment(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "own.js")
	text := "export const options = { vus: Number(__ENV.USERS), iterations: 9 };\nexport default () => {};\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	share, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + filepath.Dir(k6Binary) + ":" + os.Getenv("PATH")
	command := entryPoint(nil, path, "USERS=7", "CONNLAB_SCRIPT="+script, "CONNLAB_K6_SHARE="+share)
	command.Args = append(command.Args, "inspect")
	said, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(said), `"maxVUs": 7`) {
		t.Errorf("%v:\n%s", err, said)
	}
}
