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
	"testing"
	"time"

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
	peers := map[string]bool{}
	asked := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		peers[request.RemoteAddr] = true
		asked <- struct{}{}
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "tomcat.jsonl")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	ended := make(chan error)
	go func() { ended <- Run(ctx, server.URL, path) }()
	<-asked
	<-asked
	time.Sleep(100 * time.Millisecond)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if len(peers) != 1 {
		t.Errorf("%d connections", len(peers))
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("%s (%v)", text, err)
	}
}

// A role that is away for a while: nobody connects while nothing listens, and the scrapes go on when something does.
func TestNobodyConnectsWhileNothingListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	path := filepath.Join(t.TempDir(), "tomcat.jsonl")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	ended := make(chan error)
	go func() { ended <- Run(ctx, address, path) }()
	time.Sleep(200 * time.Millisecond)
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
	time.Sleep(100 * time.Millisecond)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "nobody accepts connections on ") || strings.Contains(string(text), "refused") {
		t.Errorf("%s (%v)", text, err)
	}
}

func askOnce(t *testing.T, address string) string {
	t.Helper()
	client := probe.NewClient(time.Second)
	defer client.CloseIdleConnections()
	text, err := ask(t.Context(), client, address)
	if err != nil {
		t.Fatal(err)
	}
	schematest.Validate(t, "scrape", text)
	return string(text)
}
