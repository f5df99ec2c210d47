package e2e

import (
	"net"
	"slices"
	"testing"
	"time"

	"connlab/k6/internal/fullqueue"
)

// serve answers each connection of a listener of its own with handle, and returns the target's URL.
func serve(t *testing.T, handle func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go handle(conn.(*net.TCPConn))
		}
	}()
	return "http://" + listener.Addr().String()
}

func readRequest(conn *net.TCPConn) { _, _ = conn.Read(make([]byte, 4096)) }

// fullQueue returns the URL of a server whose accept queue is full.
func fullQueue(t *testing.T) string {
	t.Helper()
	return "http://" + fullqueue.Address(t)
}

// otherTimeoutsMS are the timeouts that a case does not set: a failure that comes later is not the case's own.
const otherTimeoutsMS = 30_000

// The codes are k6's. The analysis relies on a separate code for each failure.
func TestFailuresAndTheirCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target    func(*testing.T) string
		changes   []string
		code      int
		dialKind  string // "" if the connection stood
		lastsMS   int64
		waiting   bool
		closeText bool // the server ended the connection
	}{
		"refused": {
			target: func(t *testing.T) string { return "http://" + freeAddress(t) },
			code:   1212, dialKind: "refused",
		},
		"no answer to the SYN until the connect timeout": {
			target: fullQueue, changes: []string{"CONNECT_TIMEOUT", "400ms"},
			code: 1211, dialKind: "timeout", lastsMS: 400,
		},
		"no answer to the SYN until the request timeout": {
			target: fullQueue, changes: []string{"REQUEST_TIMEOUT", "400ms"},
			code: 1050, dialKind: "canceled", lastsMS: 400,
		},
		"slow handler": {
			target: func(t *testing.T) string {
				// Closing it at last keeps it from the garbage collector, which would close it at once.
				return serve(t, func(conn *net.TCPConn) { readRequest(conn); time.Sleep(time.Minute); _ = conn.Close() })
			},
			changes: []string{"REQUEST_TIMEOUT", "2000ms"}, // time to connect and to send, on a busy machine too
			code:    1050, lastsMS: 2000, waiting: true,
		},
		"closed without an answer": {
			target: func(t *testing.T) string {
				return serve(t, func(conn *net.TCPConn) { readRequest(conn); _ = conn.Close() })
			},
			code: 1000, waiting: true, closeText: true,
		},
		"reset": {
			target: func(t *testing.T) string {
				return serve(t, func(conn *net.TCPConn) { readRequest(conn); _ = conn.SetLinger(0); _ = conn.Close() })
			},
			code: 1220, waiting: true, closeText: true,
		},
	} {
		// A connection for each request is the extension's own work, and fails as net/http does.
		for _, workload := range []string{"users", "tcp"} {
			t.Run(workload+": "+name, func(t *testing.T) {
				t.Parallel()
				// Two users: one keeps k6 running for a moment after the other's failure.
				r := completed(t, workload, with(with(knobs(c.target(t)), "USERS", "2", "ARRIVAL_GAP", "100ms"), c.changes...))
				record := r.record(t)
				if len(record.requests) != 2 || len(record.dials) != 2 || !record.ended {
					t.Fatalf("%d requests, %d dials, ended %v", len(record.requests), len(record.dials), record.ended)
				}
				for _, request := range record.requests {
					if request.ErrorCode != c.code || request.Status != 0 || request.Error == nil || request.Reused {
						t.Errorf("%+v (error %v)", request, request.Error)
					}
					lasts := (request.EndUS - request.TimeUS) / 1000
					// k6 starts its timeout before the transport gets the request, a moment or, on a busy machine, longer.
					if lasts < c.lastsMS/2 || lasts >= otherTimeoutsMS {
						t.Errorf("the request lasted %d ms, not about %d", lasts, c.lastsMS)
					}
					if (request.WaitingUS > 0) != c.waiting || (request.DurationUS > 0) != c.waiting {
						t.Errorf("waited: %+v", request)
					}
					if connected := c.dialKind == ""; (request.Remote != nil) != connected || (request.BlockedUS > 0) != connected ||
						(request.ConnectingUS > 0) != connected {
						t.Errorf("connected: %+v", request)
					}
					// A dial's line stands where it ended, not where it began.
					i := slices.IndexFunc(record.dials, func(dial dialLine) bool { return dial.ID == *request.Dial })
					dial := record.dials[i]
					if dial.VU != request.VU || dial.TimeUS < request.TimeUS {
						t.Errorf("request %+v names dial %+v", request, dial)
					}
					if c.dialKind == "" {
						if dial.Error != nil {
							t.Errorf("dial failed: %+v", dial)
						}
						continue
					}
					if dial.ErrorKind == nil || *dial.ErrorKind != c.dialKind || dial.Error == nil || dial.Remote == nil {
						t.Errorf("dial: %+v", dial)
					}
					if c.dialKind != "refused" && dial.Local == nil {
						t.Error("a dial that timed out does not know its port")
					}
				}
				for _, closed := range record.closes {
					if (closed.Error != nil) != c.closeText {
						t.Errorf("close: %+v", closed)
					}
				}
				live := record.live[len(record.live)-1]
				if live.Failed != 2 || len(live.Errors) != 1 {
					t.Errorf("live: %+v", live)
				}
			})
		}
	}
}

func TestAnErrorStatusIsAFailureWithAnAnswer(t *testing.T) {
	t.Parallel()
	record := completed(t, "users", with(knobs(newBackend(t, 0).URL), "USERS", "1", "PATH", "/nowhere")).record(t)
	request := record.requests[0]
	if request.Status != 404 || request.ErrorCode != 1404 || request.Error != nil {
		t.Errorf("%+v", request)
	}
	if live := record.live[len(record.live)-1]; live.Failed != 1 || live.Errors["1404"] != 1 {
		t.Errorf("%+v", live)
	}
}
