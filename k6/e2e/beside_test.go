package e2e

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSlowClientsSendTheirHeaderLineByLine(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			slowClients(t, method)
		})
	}
}

func slowClients(t *testing.T, method string) {
	t.Helper()
	var mu sync.Mutex
	var slow []time.Duration // from the first line to the last
	target := serve(t, func(conn *net.TCPConn) {
		defer func() { _ = conn.Close() }()
		reader := bufio.NewReader(conn)
		var first time.Time
		for lines := 0; ; lines++ {
			line, err := reader.ReadString('\n')
			if err != nil {
				return
			}
			if lines == 0 {
				first = time.Now()
			}
			if line == "\r\n" {
				if lines == 8 {
					mu.Lock()
					slow = append(slow, time.Since(first))
					mu.Unlock()
				}
				break
			}
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	record := completed(t, "slow-clients", with(knobs(target), "USERS", "3", "METHOD", method)).record(t)
	names := make(map[string]int)
	for _, request := range record.requests {
		names[request.Name]++
		lasts := time.Duration(request.DurationUS) * time.Microsecond
		if request.Status != 200 || request.Name == "slow" && lasts < 750*time.Millisecond {
			t.Errorf("%+v", request)
		}
		if request.Name != "delay" {
			continue
		}
		for _, slow := range record.requests {
			if slow.Name == "slow" && request.TimeUS < slow.TimeUS {
				t.Errorf("an ordinary user came before the slow ones: %+v, %+v", request, slow)
			}
		}
	}
	if names["slow"] != 2 || names["delay"] != 3 || !record.ended {
		t.Errorf("%v", names)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, took := range slow {
		if took < 750*time.Millisecond {
			t.Errorf("a header of 9 lines took %v, less than 800 ms", took)
		}
	}
	if len(slow) != 2 {
		t.Errorf("%d headers of 9 lines, not 2", len(slow))
	}
}

func TestASlowClientWhomTheServerLeavesFails(t *testing.T) {
	t.Parallel()
	target := serve(t, func(conn *net.TCPConn) { readRequest(conn); _ = conn.Close() })
	record := completed(t, "slow-clients", with(knobs(target), "USERS", "1", "SLOW_USERS", "1")).record(t)
	if len(record.requests) != 2 || !record.ended {
		t.Errorf("%d requests, not 2, ended %v", len(record.requests), record.ended)
	}
	for _, request := range record.requests {
		if request.ErrorCode == 0 || request.Error == nil {
			t.Errorf("%+v", request)
		}
	}
}

func TestHalfOpenConnectionsAreNeverAccepted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	accepted := make(map[string]bool)
	target := serve(t, func(conn *net.TCPConn) {
		mu.Lock()
		accepted[conn.RemoteAddr().String()] = true
		mu.Unlock()
		readRequest(conn)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	record := completed(t, "half-open", with(knobs(target), "USERS", "2")).record(t)
	mu.Lock()
	defer mu.Unlock()
	halfOpen := 0
	for _, dial := range record.dials {
		if dial.Local == nil || "http://"+*dial.Remote != target {
			t.Fatalf("%+v", dial)
		}
		if accepted[*dial.Local] != (dial.Error == nil) {
			t.Errorf("accepted %v: %+v", accepted[*dial.Local], dial)
		}
		if dial.Error == nil {
			continue
		}
		halfOpen++
		if *dial.ErrorKind != "half-open" || dial.DurationUS < 2_400_000 {
			t.Errorf("%+v (%s)", dial, *dial.ErrorKind)
		}
	}
	if halfOpen != 3 || len(record.dials) != 5 || len(record.requests) != 2 || !record.ended {
		t.Errorf("%d dials, %d of them half open, and %d requests", len(record.dials), halfOpen, len(record.requests))
	}
	for _, request := range record.requests {
		if request.Status != 200 {
			t.Errorf("%+v", request)
		}
	}
	if live := record.live[len(record.live)-1]; live.Requests != 2 || live.Failed != 0 {
		t.Errorf("%+v", live)
	}
}

func TestAConnectionThatCannotBeHeldHalfOpenIsAnError(t *testing.T) {
	t.Parallel()
	r := start(t, "half-open", with(knobs("http://nowhere.invalid:80"), "HALF_OPEN", "1", "USERS", "1")).wait(t)
	if !strings.Contains(r.stderr.String(), "connlab.holdHalfOpen") {
		t.Errorf("exit code %d:\n%s", r.exit, &r.stderr)
	}
}
