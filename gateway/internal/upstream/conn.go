package upstream

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Traffic is the bytes of one request's use of a connection.
type Traffic struct {
	Sent, Received atomic.Int64
}

// Conn is a recorded connection of the pool.
type Conn struct {
	net.Conn

	log    *Log
	id     int64
	local  string
	counts *counts
	shared bool // by several requests at once, as HTTP/2 does

	sent, received atomic.Int64
	broken         atomic.Pointer[string]
	user           atomic.Pointer[Traffic]
	close          sync.Once

	mu       sync.Mutex
	requests int64
	uses     int64 // begun and not ended
	ended    bool
}

// ConnOf returns the recorded connection that carries conn, which may be TLS over it; nil if there is none.
func ConnOf(conn net.Conn) *Conn {
	if secured, isTLS := conn.(*tls.Conn); isTLS {
		conn = secured.NetConn()
	}
	recorded, _ := conn.(*Conn)
	return recorded
}

// ID counts the gateway's dials, and so its connections, from 1.
func (c *Conn) ID() int64 { return c.id }

// Local is the gateway's end, address:port.
func (c *Conn) Local() string { return c.local }

// Shared says whether several requests may use it at once: its bytes are then no single request's.
func (c *Conn) Shared() bool { return c.shared }

// Take is for httptrace's GotConn: from now on the connection's bytes are this request's. It returns how many requests
// have got the connection so far.
func (c *Conn) Take(traffic *Traffic, reused bool) (number int64) {
	if !c.shared {
		c.user.Store(traffic)
	}
	if reused {
		c.counts.reused.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if !c.ended {
		if c.uses++; c.uses == 1 {
			c.counts.inUse.Add(1)
		}
	}
	return c.requests
}

// Return says that a request is done with the connection. The pool may have given it to the next one already.
func (c *Conn) Return() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		if c.uses--; c.uses == 0 {
			c.counts.inUse.Add(-1)
		}
	}
}

// Read implements net.Conn.
func (c *Conn) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	c.received.Add(int64(n))
	if user := c.user.Load(); user != nil {
		user.Received.Add(int64(n))
	}
	c.note(err)
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(buffer []byte) (int, error) {
	n, err := c.Conn.Write(buffer)
	c.sent.Add(int64(n))
	if user := c.user.Load(); user != nil {
		user.Sent.Add(int64(n))
	}
	c.note(err)
	return n, err
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	at := time.Now()
	err := c.Conn.Close()
	c.close.Do(func() {
		c.mu.Lock()
		c.ended = true
		if c.uses > 0 {
			c.counts.inUse.Add(-1)
		}
		c.mu.Unlock()
		if c.broken.Load() != nil {
			c.counts.closedByPeer.Add(1)
		}
		c.counts.closed.Add(1)
		c.log.closed(c, at)
	})
	return err
}

// note keeps the first error that came from outside: it says whether the backend closed first, and how. An error of a
// pending Read that comes from the gateway's own Close or deadline does not say that.
func (c *Conn) note(err error) {
	if err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	text := err.Error()
	if errors.Is(err, io.EOF) {
		text = "EOF"
	}
	c.broken.CompareAndSwap(nil, &text)
}
