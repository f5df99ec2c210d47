// Package exchange records what k6 gives no trail: WebSocket sessions and gRPC calls.
package exchange

import (
	"net"
	"strings"
	"sync"
	"time"

	"go.k6.io/k6/metrics"

	"connlab/k6/dial"
)

// The protocols of exchanges, as requests.jsonl names them.
const (
	WebSocket = "websocket"
	GRPC      = "grpc"
)

// k6's error codes, as its HTTP requests have them.
const (
	codeOther          = 1000
	codeRequestTimeout = 1050
	codeDial           = 1210
	codeDialTimeout    = 1211
	codeDialRefused    = 1212
	codeReset          = 1220
)

// Exchange is one WebSocket session, from its construction to its end, or one gRPC call.
type Exchange struct {
	Protocol, Method string

	log     *Log
	id      string
	attempt *dial.Attempt
	// before is the last call of the same context, which this one may be sent again for.
	before *Exchange

	mu sync.Mutex
	Outcome
	had                      net.Conn
	gotConn, secured, answer time.Time
	// ended says that a call's server ended it.
	ended bool
}

func (e *Exchange) endedByServer() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

// Outcome is what is known of an exchange by now.
type Outcome struct {
	URL  string
	Tags *metrics.TagSet
	// Status is that of the answer's header, 0 without one; 101 for a WebSocket.
	Status     int
	GRPCStatus int
	ErrorCode  int
	Error      string
	End        time.Time

	Sent, Received int64

	Blocked, TLS, Waiting, Receiving time.Duration
}

// codeOf is k6's code for an error of an attempt.
func codeOf(attempt *dial.Attempt, text string) int {
	switch kind := attempt.FailedToDial(); {
	case kind == "timeout":
		return codeDialTimeout
	case kind == "refused":
		return codeDialRefused
	case kind == "reset", strings.Contains(text, "reset by peer"):
		return codeReset
	case kind != "":
		return codeDial
	}
	return codeOther
}

// Attempt is the user, the beginning, and the connection.
func (e *Exchange) Attempt() *dial.Attempt {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.attempt
}

// Done returns what became of the exchange. One without an end was cut short by k6's, and ended with its connection.
func (e *Exchange) Done(now time.Time) Outcome {
	e.mu.Lock()
	defer e.mu.Unlock()
	done := e.Outcome
	if done.End.IsZero() {
		done.End = now
	}
	// The script may hear late of a session's end.
	if closed := dial.ClosedAt(e.had); e.Protocol == WebSocket && !closed.IsZero() && closed.Before(done.End) {
		done.End = closed
	}
	// k6 tells a script of a session that ended without a close frame, but not of one that a reset ended.
	if reset := dial.ResetOf(e.had); e.Protocol == WebSocket && done.ErrorCode == 0 && reset != "" {
		done.ErrorCode, done.Error = codeOf(e.attempt, reset), reset
	}
	if done.ErrorCode == codeOther && done.Status >= 400 {
		done.ErrorCode += done.Status
	}
	if e.gotConn.IsZero() {
		return done
	}
	sent := e.gotConn
	// gRPC tells of a call that it has sent by the caller's own goroutine: the answer may have come before that.
	if !e.answer.IsZero() && e.answer.Before(sent) {
		sent = e.answer
	}
	done.Blocked = sent.Sub(e.attempt.Start)
	if !e.secured.IsZero() {
		done.TLS = e.secured.Sub(e.gotConn)
		sent = e.secured
	}
	if e.answer.IsZero() {
		done.Waiting = done.End.Sub(sent)
		return done
	}
	done.Waiting = e.answer.Sub(sent)
	// A session lasts as long as its two sides want: that is no time that an answer took.
	if e.Protocol != WebSocket {
		done.Receiving = done.End.Sub(e.answer)
	}
	return done
}

func (e *Exchange) got(conn net.Conn, at time.Time, reused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.had, e.gotConn = conn, at
	e.attempt.Got(conn, reused, at)
}

func (e *Exchange) note(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// fail keeps the first error.
func (e *Exchange) fail(code int, text string) {
	e.note(func() {
		if e.ErrorCode == 0 {
			e.ErrorCode, e.Error = code, text
		}
	})
}

// end is the exchange's end. Its line waits for what k6 has still to say of it.
func (e *Exchange) end(at time.Time) {
	e.note(func() {
		if e.End.IsZero() {
			e.End = at
		}
	})
	e.log.ended(e)
}
