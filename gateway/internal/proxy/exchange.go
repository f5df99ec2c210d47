package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"connlab/gateway/internal/access"
	"connlab/gateway/internal/upstream"
)

// notYet is a stage that a try has not reached.
const notYet = time.Duration(-1)

// An exchange follows one request through the transport, by the hooks of net/http/httptrace, which other goroutines call.
type exchange struct {
	waiting *atomic.Int64
	dialled atomic.Int64 // the last dial that began for it

	mu    sync.Mutex
	tries []*try
}

// A try is the use of one connection, from the moment at which it is asked for.
type try struct {
	access.Try

	began   time.Time
	conn    *upstream.Conn
	traffic upstream.Traffic
	// secured says that its dial went on to a TLS handshake.
	secured bool
}

// within returns a context in which the transport reports to the exchange.
func (e *exchange) within(ctx context.Context) context.Context {
	ctx = upstream.WithDial(context.WithValue(ctx, exchangeKey{}, e), &e.dialled)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: e.getConn, GotConn: e.gotConn, PutIdleConn: e.putIdleConn, TLSHandshakeStart: e.handshake,
	})
}

func (e *exchange) handshake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.last(); t != nil {
		t.secured = true
	}
}

// last is the current try; the caller holds mu.
func (e *exchange) last() *try {
	if len(e.tries) == 0 {
		return nil
	}
	return e.tries[len(e.tries)-1]
}

func (e *exchange) getConn(server string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	// With HTTP/2 the pool of each version is asked for the same try.
	if t := e.last(); t != nil && t.conn == nil {
		return
	}
	// Another try: the connection of the one before was closed.
	e.settle(e.last(), http.StatusBadGateway)
	e.waiting.Add(1)
	e.dialled.Store(0)
	e.tries = append(e.tries, &try{
		Try:   access.Try{Server: server, Connected: notYet, Header: notYet, Ended: notYet},
		began: time.Now(),
	})
}

func (e *exchange) gotConn(info httptrace.GotConnInfo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.last()
	conn := upstream.ConnOf(info.Conn)
	if t == nil || conn == nil {
		return
	}
	e.waiting.Add(-1)
	t.conn, t.Connected, t.Reused = conn, time.Since(t.began), info.Reused
	t.Connection, t.Local = conn.ID(), conn.Local()
	t.Requests = conn.Take(&t.traffic, info.Reused)
}

// putIdleConn is called when the pool has taken a connection back, or refused it: a refused one is closed, and needs no
// return.
func (e *exchange) putIdleConn(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.last(); err == nil && t != nil && t.conn != nil {
		t.conn.Return()
	}
}

// header notes the answer's header.
func (e *exchange) header(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.last(); t != nil {
		t.Status, t.Header = status, time.Since(t.began)
	}
}

// failed notes that the last try has no answer, and returns its server and how far it came. The gateway's answer is its
// status; 0 if it has none because the client went away.
func (e *exchange) failed(status int) (server, stage string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.last()
	if t == nil {
		return "", access.Connecting
	}
	stage = access.Reading
	if t.conn == nil {
		t.Connection = e.dialled.Load()
		stage = access.Connecting
		if t.secured {
			stage = access.Securing
		}
	}
	e.settle(t, status)
	return t.Server, stage
}

// end notes that the exchange is over, whatever its outcome.
func (e *exchange) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settle(e.last(), 0)
}

// settle ends a try, if it has not ended; the caller holds mu.
func (e *exchange) settle(t *try, status int) {
	if t == nil || t.Ended != notYet {
		return
	}
	if t.conn == nil {
		e.waiting.Add(-1)
	}
	// The pool of HTTP/2 says nothing when a request is done with a connection.
	if t.conn != nil && t.conn.Shared() {
		t.conn.Return()
	}
	t.Ended = time.Since(t.began)
	if t.Status == 0 {
		t.Status = status
	}
}

// all returns the tries of an exchange that is over.
func (e *exchange) all() []access.Try {
	e.mu.Lock()
	defer e.mu.Unlock()
	tries := make([]access.Try, len(e.tries))
	for i, t := range e.tries {
		tries[i] = t.Try
		tries[i].Sent, tries[i].Received = t.traffic.Sent.Load(), t.traffic.Received.Load()
		tries[i].Shared = t.conn != nil && t.conn.Shared()
	}
	return tries
}

// body notes when an answer's body ended.
type body struct {
	io.ReadCloser

	exchange *exchange
}

// Read implements io.Reader.
func (b *body) Read(buffer []byte) (int, error) {
	n, err := b.ReadCloser.Read(buffer)
	if err != nil {
		b.exchange.end()
	}
	return n, err
}
