package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connlab/collector/internal/eventually"
	"connlab/collector/internal/netns"
	"connlab/collector/internal/sockdiag"
)

func TestMain(m *testing.M) { netns.TestMain(m) }

func TestNoSocketIsLeftBehind(t *testing.T) {
	netns.Require(t)
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
	}{
		{"by a server that keeps alive", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up") }},
		// The server's close comes first then: without the RST it would keep TIME_WAIT.
		{"by a server that closes", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "up")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			for range 20 {
				client := NewClient(eventually.Patience)
				if status, body, err := Do(client, get(t, server.URL)); err != nil || status != 200 || string(body) != "up" {
					t.Fatalf("%d %q %v", status, body, err)
				}
				client.CloseIdleConnections()
			}
			noSocketsOn(t, server.Listener.Addr())
		})
	}
}

func TestReadinessWaitsForAListenerAndFor200(t *testing.T) {
	var questions atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if questions.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	looks := 0
	err := WaitReady(t.Context(), server.URL, func() (bool, error) {
		looks++
		if looks <= 2 && questions.Load() > 0 {
			t.Error("asked while nothing listened")
		}
		return looks > 2, nil
	})
	if err != nil || questions.Load() != 3 || looks != 5 {
		t.Errorf("error %v after %d questions and %d looks", err, questions.Load(), looks)
	}
}

// While a role is paused the kernel completes handshakes for it, and a connection that is given up stays in the queue.
func TestARoleThatAcceptsNobodyIsAskedOnceUntilItDoes(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	address := "http://" + server.Listener.Addr().String()
	listening, err := NewListening(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listening.Close() }()
	client := NewClientWhile(listening, 50*time.Millisecond)
	defer client.CloseIdleConnections()
	askUntilNobodyAccepts := func() {
		eventually.Holds(t, "nobody accepts", func() bool {
			_, _, err := Do(client, get(t, address))
			return err != nil && strings.Contains(err.Error(), "nobody accepts connections on ")
		})
	}
	askUntilNobodyAccepts()
	askUntilNobodyAccepts()
	listeners, err := listening.diag.Listeners(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range listeners {
		if one.Port == listening.port && one.Depth != 1 {
			t.Errorf("%d connections wait", one.Depth)
		}
	}
	server.Start()
	if err := WaitReady(t.Context(), address, listening.Now); err != nil {
		t.Error(err)
	}
}

func TestReadinessEndsWithItsContextOrAnError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the run is over")
	cancel(cause)
	if err := WaitReady(ctx, "http://127.0.0.1:1/", func() (bool, error) { return false, nil }); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if err := WaitReady(t.Context(), "http://127.0.0.1:1/", func() (bool, error) { return false, cause }); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
}

func TestAPortIsReadyOnceSomethingListens(t *testing.T) {
	looks := 0
	if err := WaitListening(t.Context(), func() (bool, error) { looks++; return looks > 2, nil }); err != nil || looks != 3 {
		t.Errorf("error %v after %d looks", err, looks)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the run is over")
	cancel(cause)
	if err := WaitListening(ctx, func() (bool, error) { return false, nil }); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if err := WaitListening(t.Context(), func() (bool, error) { return false, cause }); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
}

func TestAnAnswerWithoutEndIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range BodyBytesMax/1024 + 1 {
			_, _ = io.WriteString(w, strings.Repeat("x", 1024))
		}
	}))
	defer server.Close()
	client := NewClient(eventually.Patience)
	defer client.CloseIdleConnections()
	if _, _, err := Do(client, get(t, server.URL)); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("error %v", err)
	}
}

func get(t *testing.T, address string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// noSocketsOn waits until no socket but the listener has the server's address on either end.
func noSocketsOn(t *testing.T, server net.Addr) {
	t.Helper()
	diag, err := sockdiag.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = diag.Close() }()
	// The server's goroutines take a moment to see the RST.
	eventually.Holds(t, "no socket is left behind", func() bool {
		var left []string
		if err := diag.Sockets(sockdiag.Connections|sockdiag.TimeWaiting, func(s sockdiag.Socket) {
			if s.Local.String() == server.String() || s.Peer.String() == server.String() {
				left = append(left, fmt.Sprint(s))
			}
		}); err != nil {
			t.Fatal(err)
		}
		return left == nil
	})
}
