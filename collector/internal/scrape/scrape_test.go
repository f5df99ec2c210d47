package scrape

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"connlab/collector/internal/eventually"
	"connlab/collector/internal/probe"
	"connlab/collector/internal/schematest"
)

func TestAnAnswerIsALine(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"JSON", 200, "{\n  \"connections\": {\"current\": 7}\n}", `"status":200,"body":{"connections":{"current":7}}}`},
		{"text", 200, "Active connections: 1\n", `"status":200,"body":"Active connections: 1\n"}`},
		{"nothing", 204, "", `"status":204,"body":""}`},
		{"a refusal", 503, "busy", `"status":503,"body":"busy"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			text := askOnce(t, server.URL)
			if !strings.HasPrefix(text, `{"time_us":`) || !strings.HasSuffix(text, test.want+"\n") {
				t.Errorf("got %s, want …%s", text, test.want)
			}
		})
	}
}

func TestAFailedScrapeIsALineThatSaysWhy(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var got line
	text := askOnce(t, server.URL)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.Error, "connection refused") || got.Status != 0 || got.TimeUs == 0 {
		t.Errorf("got %s", text)
	}
}

func TestScrapesGoOverOneConnectionUntilTheEnd(t *testing.T) {
	var opened, asked atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	path := filepath.Join(t.TempDir(), "tomcat.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Run(ctx, server.URL, path) }()
	eventually.Has(t, path, "\n", 2)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	// A scrape that times out, as may happen on a busy machine, gives up its connection. The end may cut one off.
	timedOut, lines := eventually.Count(path, `"error":`), eventually.Count(path, "\n")
	if int(opened.Load()) > 1+timedOut {
		t.Errorf("%d connections, and %d scrapes timed out", opened.Load(), timedOut)
	}
	if all := int(asked.Load()); lines < 2 || timedOut == 0 && lines != all && lines != all-1 {
		t.Errorf("%d lines of %d scrapes", lines, all)
	}
}

// A role that is away for a while: nobody connects while nothing listens, and the scrapes go on when something does.
func TestNobodyConnectsWhileNothingListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	path := filepath.Join(t.TempDir(), "tomcat.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- Run(ctx, address, path) }()
	eventually.Has(t, path, "nobody accepts connections on ", 1)
	listener, err := net.Listen("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 10)
	back := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} }))
	back.Listener = listener
	back.Start()
	defer back.Close()
	<-asked
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "refused") {
		t.Errorf("%s (%v)", text, err)
	}
}

func askOnce(t *testing.T, address string) string {
	t.Helper()
	client := probe.NewClient(eventually.Patience)
	defer client.CloseIdleConnections()
	text, err := ask(t.Context(), client, address)
	if err != nil {
		t.Fatal(err)
	}
	schematest.Validate(t, "scrape", text)
	return string(text)
}
