package dial

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"go.k6.io/k6/lib"
)

// Attempt is what k6's own record of a request lacks: its user, its beginning, and the dial that it waited for or used.
// It travels as the remote address in the request's trail, the one value there that comes from a connection.
type Attempt struct {
	VU        uint64
	Iteration int64
	Start     time.Time

	dialled atomic.Uint64
	// failed is how its dial failed, as dials.jsonl spells it.
	failed atomic.Pointer[string]
	conn   *Conn
	reused bool
	http2  bool
	// sends is how often it was sent: first on the connection first, at firstSent, and last at sent.
	sends           int
	first           *Conn
	firstSent, sent time.Time
}

var _ net.Addr = &Attempt{}

// Network implements net.Addr.
func (a *Attempt) Network() string { return "tcp" }

// String returns the remote address, "" for a request that got no connection.
func (a *Attempt) String() string {
	if a.conn == nil {
		return ""
	}
	return a.conn.remote
}

// Reused says whether an earlier request had already used the connection.
func (a *Attempt) Reused() bool { return a.conn != nil && a.reused }

// HTTP2 says whether its connection carries several requests at once.
func (a *Attempt) HTTP2() bool { return a.conn != nil && a.http2 }

// Blocked is how long it waited until it was sent, for the last time if that was more than once.
func (a *Attempt) Blocked() time.Duration { return a.sent.Sub(a.Start) }

// SentAgain is how often the client sent the request again by itself, the dial of the connection on which it was sent
// first, and how long it had been sent in vain; 0 for a request that was sent once.
func (a *Attempt) SentAgain() (times int, first uint64, in time.Duration) {
	if a.sends < 2 {
		return 0, 0, 0
	}
	return a.sends - 1, a.first.id, a.sent.Sub(a.firstSent)
}

// Connecting is how long it took to make the request's connection; 0 if none was made for it.
func (a *Attempt) Connecting() time.Duration {
	if a.conn == nil || a.reused {
		return 0
	}
	return a.conn.connecting
}

// DialID is the dial of the request's connection or, if it got none, the dial that began for it; 0 if none did.
func (a *Attempt) DialID() uint64 {
	if a.conn == nil {
		return a.dialled.Load()
	}
	return a.conn.id
}

// FailedToDial is how the dial that began for it failed, "" if none did.
func (a *Attempt) FailedToDial() string {
	if kind := a.failed.Load(); kind != nil {
		return *kind
	}
	return ""
}

// Got gives an attempt of Begin or NewAttempt the connection on which it is sent.
func (a *Attempt) Got(conn net.Conn, reused bool, at time.Time) {
	a.conn, a.reused = recordedOf(conn), reused
	a.sentOn(a.conn, at)
}

// Again makes the attempt of NewAttempt one of the same request as earlier, which the server did not process.
func (a *Attempt) Again(earlier *Attempt) {
	a.Start = earlier.Start
	a.sends, a.first, a.firstSent = earlier.sends, earlier.first, earlier.firstSent
}

// NewAttempt returns the attempt of a request that k6's net/http does not make: one without a connection, yet.
func NewAttempt(state *lib.State, start time.Time) *Attempt {
	return &Attempt{VU: state.VUID, Iteration: state.Iteration, Start: start}
}

// Begin returns such an attempt with a context; a dial in that context is the attempt's own.
func Begin(ctx context.Context, state *lib.State) (context.Context, *Attempt) {
	attempt := NewAttempt(state, time.Now())
	return context.WithValue(ctx, attemptKey{}, attempt), attempt
}

// Claim makes the last dial that a VU began for no request in particular, as gRPC does, the attempt's. It says whether
// there was one.
func (a *Attempt) Claim(state *lib.State) bool {
	dialer, ours := state.Dialer.(*Dialer)
	if !ours {
		return false
	}
	last := dialer.unclaimed.Load()
	if last == nil {
		return false
	}
	a.dialled.Store(last.dialled.Load())
	a.failed.Store(last.failed.Load())
	return true
}

type attemptKey struct{}

// attempts is the transport of a VU that gives each request its Attempt.
type attempts struct {
	next  http.RoundTripper
	state *lib.State
}

// RoundTrip implements http.RoundTripper.
func (a *attempts) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	trace := httptrace.ContextClientTrace(ctx)
	if trace == nil || trace.GotConn == nil || trace.GetConn == nil {
		return a.next.RoundTrip(request)
	}
	attempt := &Attempt{VU: a.state.VUID, Iteration: a.state.Iteration, Start: time.Now()}
	carried := false
	getConn, gotConn := trace.GetConn, trace.GotConn
	// k6 makes a trace for each request, so this one is ours to change.
	trace.GetConn = func(hostPort string) {
		// net/http sends the request again if the server had closed its kept connection; the request then has no
		// connection. k6's tracer counts the request as blocked from the first time on.
		if !carried {
			getConn(hostPort)
		}
		attempt.conn = nil
		attempt.dialled.Store(0)
	}
	trace.GotConn = func(info httptrace.GotConnInfo) {
		if conn := recordedOf(info.Conn); conn != nil {
			attempt.conn, attempt.reused = conn, info.Reused
			attempt.send(conn, info.Conn)
			info.Conn = carrier{Conn: info.Conn, attempt: attempt}
			// k6's tracer counts sending from the first connection on, unless the connection is marked as reused.
			info.Reused = info.Reused || carried
			carried = true
		}
		gotConn(info)
	}
	// net/http keeps a request's values in the context of the dial that it begins for it.
	response, err := a.next.RoundTrip(request.WithContext(context.WithValue(ctx, attemptKey{}, attempt)))
	if err != nil && attempt.conn == nil {
		// A request that never had a connection has no address that could carry its attempt. If k6's tracer hears of a
		// kept connection before the request for one, it takes the address and leaves all timings 0, as for a request
		// without a connection.
		if !carried {
			gotConn(httptrace.GotConnInfo{Conn: carrier{attempt: attempt}, Reused: true})
		}
		getConn("")
	}
	return response, err
}

// send notes that the request is sent over a connection, which carried is over TLS.
func (a *Attempt) send(conn *Conn, carried net.Conn) {
	a.sentOn(conn, time.Now())
	secured, isTLS := carried.(*tls.Conn)
	a.http2 = isTLS && conn.chose(secured) == "h2"
}

func (a *Attempt) sentOn(conn *Conn, at time.Time) {
	a.sent = at
	if a.sends == 0 {
		a.first, a.firstSent = conn, at
	}
	a.sends++
}

// recordedOf returns the recorded connection that carries conn, which may be TLS over it; nil if there is none.
func recordedOf(conn net.Conn) *Conn {
	if secured, isTLS := conn.(*tls.Conn); isTLS {
		conn = secured.NetConn()
	}
	recorded, _ := conn.(*Conn)
	return recorded
}

// carrier is the connection that k6's tracer sees.
type carrier struct {
	net.Conn

	attempt *Attempt
}

// RemoteAddr returns the *Attempt.
func (c carrier) RemoteAddr() net.Addr { return c.attempt }
