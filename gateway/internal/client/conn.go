// Package client follows the connections on the traffic port: their number, their requests and their bytes.
package client

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Counter numbers connections.
type Counter struct {
	accepted, open atomic.Int64
}

// Open is how many are open.
func (c *Counter) Open() int64 { return c.open.Load() }

// A Listener accepts connections that the Counter follows.
type Listener struct {
	net.Listener

	Counter *Counter
}

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.Counter.open.Add(1)
	return &Conn{Conn: conn, counter: l.Counter, serial: l.Counter.accepted.Add(1)}, nil
}

// A Conn is one connection. net/http reads from it while a request is handled, to see whether the client goes away.
type Conn struct {
	net.Conn

	counter *Counter
	serial  int64
	close   sync.Once
	written atomic.Int64

	mu        sync.Mutex
	requests  int64
	read      int64
	firstByte time.Time
}

type key struct{}

// Context implements http.Server's ConnContext: a request's context leads to its connection.
func Context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, key{}, conn)
}

// FromContext is a request's connection.
func FromContext(ctx context.Context) *Conn {
	conn, _ := ctx.Value(key{}).(net.Conn)
	if secured, isTLS := conn.(*tls.Conn); isTLS {
		conn = secured.NetConn()
	}
	followed, _ := conn.(*Conn)
	return followed
}

// Serial counts the gateway's connections, from 1.
func (c *Conn) Serial() int64 { return c.serial }

// Written is how many bytes were sent so far.
func (c *Conn) Written() int64 { return c.written.Load() }

// Begin counts a request, from 1, and returns when its first byte was read.
func (c *Conn) Begin(secured, shared bool) (number int64, firstByte time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	// It may have been read together with the request before it. And what was read first of a connection with TLS is the
	// handshake, which is no part of the request. On a connection that several requests share, nobody knows.
	if c.firstByte.IsZero() || secured && c.requests == 1 || shared {
		c.firstByte = time.Now()
	}
	return c.requests, c.firstByte
}

// EndOfRequest returns how many bytes were read since the last request. What is read from now on is the next one's.
func (c *Conn) EndOfRequest() (bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes, c.read, c.firstByte = c.read, 0, time.Time{}
	return bytes
}

// Read implements net.Conn.
func (c *Conn) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	if n > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.firstByte.IsZero() {
			c.firstByte = time.Now()
		}
		c.read += int64(n)
	}
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(buffer []byte) (int, error) {
	n, err := c.Conn.Write(buffer)
	c.written.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.close.Do(func() { c.counter.open.Add(-1) })
	return c.Conn.Close()
}
