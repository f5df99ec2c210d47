// Package upstream is the gateway's side towards the backends: Go's own pool of connections, a record of each of them,
// and counters of what the pool does not report.
package upstream

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"connlab/gateway/internal/config"
)

// A Pool is an http.Transport whose connections are recorded.
type Pool struct {
	*http.Transport

	dialTimeout time.Duration
	sessions    int
	log         *Log
	counts      counts
}

// counts follows connections as they come and go. A connection is in use from httptrace's GotConn to its PutIdleConn or
// its end; all others that are open are idle.
type counts struct {
	dialling, opened, closed, closedByPeer, inUse, reused atomic.Int64

	failed [len(Kinds)]atomic.Int64
}

// Connections are the pool's counts at one moment; Opened, Reused and the closed ones count from the start.
type Connections struct {
	Open         int64 `json:"open"`
	Idle         int64 `json:"idle"`
	Opened       int64 `json:"opened"`
	Reused       int64 `json:"reused"` // requests that used a connection opened for another request
	Closed       int64 `json:"closed"`
	ClosedByPeer int64 `json:"closedByPeer"` // of those closed
}

// Dials are those under way, and those that failed since the start, by their kinds.
type Dials struct {
	UnderWay int64            `json:"underWay"`
	Failed   map[string]int64 `json:"failed"`
}

// NewPool makes a pool with these settings, and with Go's own for the rest.
func NewPool(settings config.Config, log *Log) (*Pool, error) {
	pool := &Pool{dialTimeout: settings.DialTimeout, sessions: settings.TLSClientSessionCache, log: log}
	var protocols http.Protocols
	protocols.SetHTTP1(!settings.UpstreamHTTP2)
	// Without TLS nothing says what a server speaks: the gateway begins with HTTP/2 at once ("prior knowledge").
	protocols.SetHTTP2(settings.UpstreamHTTP2 && settings.UpstreamTLS != "")
	protocols.SetUnencryptedHTTP2(settings.UpstreamHTTP2 && settings.UpstreamTLS == "")
	// Only the request decides where it goes and what it carries: no proxy from the environment, and unchanged bodies.
	pool.Transport = &http.Transport{
		DialContext:           pool.dial,
		MaxIdleConns:          settings.MaxIdleConns,
		MaxIdleConnsPerHost:   settings.MaxIdleConnsPerHost,
		MaxConnsPerHost:       settings.MaxConnsPerHost,
		IdleConnTimeout:       settings.IdleConnTimeout,
		ResponseHeaderTimeout: settings.ResponseHeaderTimeout,
		DisableKeepAlives:     settings.DisableKeepAlives,
		DisableCompression:    true,
		TLSHandshakeTimeout:   settings.TLSHandshakeTimeout,
		Protocols:             &protocols,
	}
	if settings.UpstreamTLS != "" {
		var err error
		pool.TLSClientConfig, err = settings.Certificates.Client(settings.UpstreamTLS, settings.TLSClientSessionCache)
		if err != nil {
			return nil, err
		}
	}
	return pool, nil
}

// Sessions is how many TLS sessions with servers it keeps.
func (p *Pool) Sessions() int { return p.sessions }

// Scheme is that of the servers' addresses.
func (p *Pool) Scheme() string {
	if p.TLSClientConfig != nil {
		return "https"
	}
	return "http"
}

// DialTimeout bounds connect(2); 0: the kernel does.
func (p *Pool) DialTimeout() time.Duration { return p.dialTimeout }

// Connections returns the state of the pool.
func (p *Pool) Connections() Connections {
	// In this order no connection counts as closed, or in use, before it counts as opened.
	closed, byPeer, inUse := p.counts.closed.Load(), p.counts.closedByPeer.Load(), p.counts.inUse.Load()
	reused, opened := p.counts.reused.Load(), p.counts.opened.Load()
	return Connections{
		Open:         opened - closed,
		Idle:         max(opened-closed-inUse, 0),
		Opened:       opened,
		Reused:       reused,
		Closed:       closed,
		ClosedByPeer: byPeer,
	}
}

// Dials returns the state of the dials.
func (p *Pool) Dials() Dials {
	dials := Dials{UnderWay: p.counts.dialling.Load(), Failed: make(map[string]int64, len(Kinds))}
	for i, kind := range Kinds {
		dials.Failed[kind] = p.counts.failed[i].Load()
	}
	return dials
}

// Close closes idle connections, and completes the record of all.
func (p *Pool) Close() {
	p.CloseIdleConnections()
	p.log.finish()
}

type dialKey struct{}

// WithDial returns a context in which the last dial that begins for a request leaves its number.
func WithDial(ctx context.Context, number *atomic.Int64) context.Context {
	return context.WithValue(ctx, dialKey{}, number)
}

// dial is the transport's DialContext. Its context has the values of the request for which it begins.
func (p *Pool) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.counts.dialling.Add(1)
	defer p.counts.dialling.Add(-1)
	dial := p.log.begin(address)
	if began, asked := ctx.Value(dialKey{}).(*atomic.Int64); asked {
		began.Store(dial.id)
	}
	dialer := net.Dialer{Timeout: p.dialTimeout, Control: dial.look(p.dialTimeout)}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		p.counts.failed[kindOf(err)].Add(1)
		p.log.failed(dial, err)
		return nil, err
	}
	p.counts.opened.Add(1)
	connected := p.log.connected(dial, conn, &p.counts)
	connected.shared = p.Protocols.HTTP2() || p.Protocols.UnencryptedHTTP2()
	return connected, nil
}
