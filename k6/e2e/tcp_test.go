package e2e

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// peer is what a server saw of one connection.
type peer struct {
	asked    string
	closedBy string // "client" or "server": whose FIN came first
}

// answerPeers serves each connection one answer, closes it if it was asked to, and reports what it saw.
func answerPeers(t *testing.T, answer string, beforeClosing time.Duration) (target string, peers <-chan peer) {
	t.Helper()
	seen := make(chan peer, 100)
	target = serve(t, func(conn *net.TCPConn) {
		request := make([]byte, 4096)
		n, _ := conn.Read(request)
		one := peer{asked: string(request[:n]), closedBy: "client"}
		_, _ = io.WriteString(conn, answer)
		if strings.Contains(one.asked, "Connection: close\r\n") {
			_ = conn.SetReadDeadline(time.Now().Add(beforeClosing))
			if _, err := conn.Read(request); !errors.Is(err, io.EOF) {
				one.closedBy = "server"
			}
			_ = conn.Close()
		} else if _, err := conn.Read(request); !errors.Is(err, io.EOF) {
			one.closedBy = "nobody: " + err.Error()
		}
		seen <- one
	})
	return target, seen
}

var answers = map[string]string{
	"of a known length": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"without a body":    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"in chunks":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
}

func TestEachRequestHasAConnectionThatTheClientClosesFirst(t *testing.T) {
	t.Parallel()
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, peers := answerPeers(t, answer, 0)
			record := completed(t, "tcp", with(knobs(target), "USERS", "2", "CALLS", "3")).record(t)
			checkOneEach(t, record, 6)
			for _, closed := range record.closes {
				if closed.Error != nil {
					t.Errorf("%+v", closed)
				}
			}
			for range 6 {
				if one := <-peers; one.closedBy != "client" || !strings.Contains(one.asked, "Connection: keep-alive\r\n") {
					t.Errorf("%+v", one)
				}
			}
		})
	}
}

func TestEachRequestHasAConnectionThatTheServerClosesFirst(t *testing.T) {
	t.Parallel()
	answers := with(answers, "that ends with its connection", "HTTP/1.1 200 OK\r\n\r\nhello")
	const lingers = 150 * time.Millisecond
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, peers := answerPeers(t, answer, lingers)
			record := completed(t, "tcp", with(knobs(target), "USERS", "1", "CALLS", "3", "CLOSES_FIRST", "server")).record(t)
			checkOneEach(t, record, 3)
			for i, closed := range record.closes {
				if closed.Error == nil || *closed.Error != "EOF" {
					t.Errorf("%+v", closed)
				}
				if request := record.requests[i]; request.EndUS-request.TimeUS < lingers.Microseconds() {
					t.Errorf("it did not wait for the server to close: %+v", request)
				}
			}
			for range 3 {
				if one := <-peers; one.closedBy != "server" {
					t.Errorf("%+v", one)
				}
			}
		})
	}
}

func checkOneEach(t *testing.T, record record, requests int) {
	t.Helper()
	if len(record.requests) != requests || len(record.dials) != requests || len(record.closes) != requests || !record.ended {
		t.Fatalf("%d requests, %d dials, %d closes, ended %v: want %d of each, in order",
			len(record.requests), len(record.dials), len(record.closes), record.ended, requests)
	}
	for _, request := range record.requests {
		i := slices.IndexFunc(record.dials, func(dial dialLine) bool { return dial.ID == *request.Dial })
		if request.Status != 200 || request.Reused || request.ConnectingUS == 0 || record.dials[i].VU != request.VU {
			t.Errorf("%+v over %+v", request, record.dials[i])
		}
	}
	if live := record.live[len(record.live)-1]; live.Requests != int64(requests) || live.Failed != 0 {
		t.Errorf("%+v", live)
	}
}

func TestAServerThatDoesNotCloseFailsTheRequestThatAskedItTo(t *testing.T) {
	t.Parallel()
	target, _ := answerPeers(t, answers["of a known length"], time.Minute)
	record := completed(t, "tcp", with(knobs(target), "USERS", "1", "CLOSES_FIRST", "server", "REQUEST_TIMEOUT", "2000ms")).record(t)
	if len(record.requests) != 1 || record.requests[0].ErrorCode != 1050 || record.closes[0].Error != nil {
		t.Errorf("%+v, %+v", record.requests, record.closes)
	}
}

func TestAnAnswerThatBreaksOffIsAFailure(t *testing.T) {
	t.Parallel()
	target := serve(t, func(conn *net.TCPConn) {
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello")
		_ = conn.Close()
	})
	for _, side := range []string{"client", "server"} {
		record := completed(t, "tcp", with(knobs(target), "USERS", "1", "CLOSES_FIRST", side)).record(t)
		if request := record.requests[0]; request.ErrorCode != 1000 || request.Error == nil || record.closes[0].Error == nil {
			t.Errorf("%s: %+v, %+v", side, request, record.closes)
		}
	}
}

func TestTheCallsOfAUserGoToEachTargetInTurnFromItsOwn(t *testing.T) {
	t.Parallel()
	targets := []string{newBackend(t, 0).URL, newBackend(t, 0).URL}
	record := completed(t, "tcp", with(knobs(strings.Join(targets, " ")), "USERS", "2", "CALLS", "3")).record(t)
	calls := make(map[int64]int64)
	for _, request := range record.requests {
		if target := targets[(request.VU-1+calls[request.VU])%2]; !strings.HasPrefix(request.URL, target+"/") {
			t.Errorf("call %d of user %d went to %s", calls[request.VU]+1, request.VU, request.URL)
		}
		calls[request.VU]++
	}
	if len(record.requests) != 6 {
		t.Errorf("%d requests", len(record.requests))
	}
}
