package dial

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"time"

	"go.k6.io/k6/lib"
)

// Side is one end of a connection.
type Side string

// The two ends.
const (
	Client Side = "client"
	Server Side = "server"
)

// longAgo is a deadline that ends a pending operation at once.
var longAgo = time.Unix(1, 0)

// perRequest is the transport of a VU that makes a connection for each request; a chosen side closes it first. net/http
// cannot do that: with keep-alive it does not close; without, it asks the server to close and closes at the same moment,
// so that chance decides.
type perRequest struct {
	dialer      *Dialer
	closesFirst Side
	// lineInterval is the pause before each line of a request's header but the first; 0 sends the request at once.
	lineInterval time.Duration
}

// ConnectionPerRequest gives a VU's further requests a connection each. With a lineInterval, they send the lines of their
// header one by one.
func ConnectionPerRequest(state *lib.State, closesFirst Side, lineInterval time.Duration) error {
	if closesFirst != Client && closesFirst != Server {
		return errors.New("the side must be client or server")
	}
	if lineInterval < 0 {
		return errors.New("the interval must not be negative")
	}
	if state == nil {
		return errors.New("only a VU has connections, not the init code")
	}
	transport, recorded := state.Transport.(*attempts)
	dialer, ours := state.Dialer.(*Dialer)
	if !recorded || !ours {
		return errors.New("the VU's connections are not recorded")
	}
	transport.next = &perRequest{dialer: dialer, closesFirst: closesFirst, lineInterval: lineInterval}
	return nil
}

// RoundTrip implements http.RoundTripper. The answer's body must be read to its end, as k6 does: the connection ends there.
func (p *perRequest) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	trace := httptrace.ContextClientTrace(ctx)
	if trace == nil {
		return nil, errors.New("a request without k6's tracer: it was not made by k6/http")
	}
	address := hostPort(request.URL)
	trace.GetConn(address)
	conn, err := p.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	trace.GotConn(httptrace.GotConnInfo{Conn: conn})
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(longAgo) })
	response, err := p.exchange(conn, request, trace)
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, causeOf(ctx, err)
	}
	response.Body = &body{ReadCloser: response.Body, conn: conn, ctx: ctx, stop: stop, closesFirst: p.closesFirst}
	return response, nil
}

// connect dials for this request alone. A request that gives up meanwhile ends as its context did, and cancels its
// dial. net/http would let the dial continue for a later request.
func (p *perRequest) connect(ctx context.Context, address string) (net.Conn, error) {
	dialCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	conn, err := p.dialer.DialContext(dialCtx, "tcp", address)
	stop()
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	return conn, nil
}

func (p *perRequest) exchange(conn net.Conn, request *http.Request, trace *httptrace.ClientTrace) (*http.Response, error) {
	asked := request.Clone(request.Context())
	if p.closesFirst == Server {
		asked.Header.Set("Connection", "close")
	} else {
		asked.Header.Set("Connection", "keep-alive")
	}
	err := p.send(conn, asked)
	trace.WroteRequest(httptrace.WroteRequestInfo{Err: err})
	if err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	if _, err := reader.Peek(1); err != nil {
		return nil, err
	}
	trace.GotFirstResponseByte()
	return http.ReadResponse(reader, request)
}

func (p *perRequest) send(conn net.Conn, request *http.Request) error {
	if p.lineInterval == 0 {
		return request.Write(conn)
	}
	var whole bytes.Buffer
	if err := request.Write(&whole); err != nil {
		return err
	}
	for number, line := range slices.Collect(bytes.Lines(whole.Bytes())) {
		if number > 0 && !slept(request.Context(), p.lineInterval) {
			return request.Context().Err()
		}
		if _, err := conn.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// slept says whether nothing interrupted the sleep.
func slept(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// body is an answer's body that ends with its connection.
type body struct {
	io.ReadCloser

	conn        net.Conn
	ctx         context.Context
	stop        func() bool
	closesFirst Side
	ended       bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil || b.ended:
		return n, err
	case !errors.Is(err, io.EOF):
		return n, causeOf(b.ctx, err)
	}
	b.ended = true
	if b.closesFirst == Server {
		// A server that ends the connection by RST has closed it as well.
		_, _ = io.Copy(io.Discard, b.conn)
		if gone := b.ctx.Err(); gone != nil {
			return n, gone
		}
	}
	_ = b.Close()
	return n, io.EOF
}

// Close implements io.Closer. Before the body's end it aborts the connection.
func (b *body) Close() error {
	b.stop()
	_ = b.conn.Close()
	return nil
}

// causeOf is why the request ended: its timeout or k6's end, if that broke off what failed.
func causeOf(ctx context.Context, err error) error {
	if gone := ctx.Err(); gone != nil {
		return gone
	}
	return err
}

func hostPort(target *url.URL) string {
	if target.Port() != "" {
		return target.Host
	}
	return net.JoinHostPort(target.Hostname(), "80")
}
