// Package proxy passes requests on to the upstream servers, and records each.
package proxy

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"connlab/gateway/internal/access"
	"connlab/gateway/internal/client"
	"connlab/gateway/internal/upstream"
)

// nginx's status for a client that closed its connection before it had an answer.
const statusClientClosed = 499

// How often Drain looks.
const drainPeriod = 5 * time.Millisecond

// A Handler is the reverse proxy.
type Handler struct {
	proxy   httputil.ReverseProxy
	log     *access.Log
	faults  *access.ErrorLog
	next    atomic.Uint64
	targets []target

	inFlight, waiting, served atomic.Int64
}

type target struct {
	url  *url.URL
	name string
}

// Requests are the counts at one moment; Served counts from the start.
type Requests struct {
	InFlight int64 `json:"inFlight"`
	Waiting  int64 `json:"waiting"` // of those, for a connection to a backend
	Served   int64 `json:"served"`
}

// New makes a proxy to these servers, which take turns.
func New(addresses []upstream.Address, pool *upstream.Pool, requests *access.Log, faults *access.ErrorLog) *Handler {
	h := &Handler{log: requests, faults: faults}
	for _, address := range addresses {
		h.targets = append(h.targets, target{&url.URL{Scheme: pool.Scheme(), Host: address.Resolved}, address.Name})
	}
	h.proxy = httputil.ReverseProxy{
		Rewrite:        h.rewrite,
		Transport:      pool,
		ModifyResponse: answered,
		ErrorHandler:   h.failed,
		ErrorLog:       log.New(faults, "", 0),
		BufferPool:     &buffers{},
	}
	return h
}

// Requests returns what the handler is doing.
func (h *Handler) Requests() Requests {
	return Requests{InFlight: h.inFlight.Load(), Waiting: h.waiting.Load(), Served: h.served.Load()}
}

// Drain waits until all requests have their lines; if ctx ends first, it returns how many have none.
func (h *Handler) Drain(ctx context.Context) (without int64) {
	ticker := time.NewTicker(drainPeriod)
	defer ticker.Stop()
	for h.inFlight.Load() > 0 {
		select {
		case <-ctx.Done():
			return h.inFlight.Load()
		case <-ticker.C:
		}
	}
	return 0
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	found, _ := ctx.Value(exchangeKey{}).(*exchange)
	return found
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := client.FromContext(r.Context())
	number, began := conn.Begin(r.TLS != nil, r.ProtoMajor > 1)
	writtenBefore := conn.Written()
	h.inFlight.Add(1)
	answer := &answer{ResponseWriter: w}
	e := &exchange{waiting: &h.waiting}
	complete := false
	defer func() {
		received := conn.EndOfRequest()
		if complete {
			// So that the line counts only bytes that were sent, and has the time at which the last one was.
			complete = answer.Flush() == nil
		}
		sent := conn.Written() - writtenBefore
		if r.ProtoMajor > 1 {
			// The connection's bytes are of several requests.
			received, sent = 0, answer.body
		}
		e.end()
		host, port, _ := net.SplitHostPort(r.RemoteAddr)
		remotePort, _ := strconv.Atoi(port)
		ended := time.Now()
		h.log.Write(&access.Request{
			Ended: ended, Took: ended.Sub(began), Connection: conn.Serial(), Number: number,
			RemoteAddress: host, RemotePort: remotePort, Method: r.Method, URI: r.RequestURI, Protocol: r.Proto, TLS: r.TLS,
			Received: received, Sent: sent, BodySent: answer.body,
			Complete: complete && answer.status != statusClientClosed, Status: answer.status, Tries: e.all(),
		})
		h.served.Add(1)
		h.inFlight.Add(-1)
	}()
	// An interrupted copy ends with a panic: net/http then closes the client's connection.
	h.proxy.ServeHTTP(answer, r.WithContext(e.within(r.Context())))
	complete = true
}

func (h *Handler) rewrite(r *httputil.ProxyRequest) {
	target := h.targets[(h.next.Add(1)-1)%uint64(len(h.targets))]
	r.SetURL(target.url)
	r.Out.Host = target.name
}

// answered is the proxy's ModifyResponse: the answer's header is there.
func answered(response *http.Response) error {
	e := exchangeOf(response.Request.Context())
	e.header(response.StatusCode)
	if response.StatusCode != http.StatusSwitchingProtocols {
		response.Body = &body{ReadCloser: response.Body, exchange: e}
	}
	return nil
}

// failed is the proxy's ErrorHandler: there is no answer.
func (h *Handler) failed(w http.ResponseWriter, r *http.Request, err error) {
	e := exchangeOf(r.Context())
	connection := client.FromContext(r.Context()).Serial()
	if r.Context().Err() != nil {
		e.failed(0)
		w.WriteHeader(statusClientClosed)
		return
	}
	status := http.StatusBadGateway
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		status = http.StatusGatewayTimeout
	}
	server, stage := e.failed(status)
	h.faults.Upstream(connection, stage, server, err)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
}

// answer counts what is written to the client.
type answer struct {
	http.ResponseWriter

	status int
	body   int64
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	// 1xx is not the answer yet.
	if a.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(data []byte) (int, error) {
	n, err := a.ResponseWriter.Write(data)
	a.body += int64(n)
	return n, err
}

// Flush sends what is buffered.
func (a *answer) Flush() error { return http.NewResponseController(a.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// buffers spares the proxy a new buffer for each answer that it copies.
type buffers struct{ pool sync.Pool }

const copyBytes = 32 << 10 // as httputil makes them

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if buffer, _ := b.pool.Get().(*[copyBytes]byte); buffer != nil {
		return buffer[:]
	}
	return make([]byte, copyBytes)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(buffer []byte) { b.pool.Put((*[copyBytes]byte)(buffer)) }
