package dial

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"connlab/k6/record"
)

// Conn is a recorded connection. It counts its bytes and writes a line when it is closed.
type Conn struct {
	net.Conn

	log        *Log
	id         uint64
	remote     string
	connecting time.Duration

	sent, received atomic.Int64
	broken, reset  atomic.Pointer[string]
	close          sync.Once
	closedAt       atomic.Pointer[time.Time]
	used           atomic.Bool
	negotiated     sync.Once
	protocol       string
}

// chose returns the protocol that the TLS handshake over the connection chose; "" for none.
func (c *Conn) chose(secured *tls.Conn) string {
	c.negotiated.Do(func() { c.protocol = secured.ConnectionState().NegotiatedProtocol })
	return c.protocol
}

// Use says whether the connection was used before, and that it is from now on.
func (c *Conn) Use() bool { return c.used.Swap(true) }

// LocalAddr implements net.Conn. The address leads back to the connection: gRPC tells of a call's connection by it alone.
func (c *Conn) LocalAddr() net.Addr { return localAddr{c.Conn.LocalAddr(), c} }

type localAddr struct {
	net.Addr

	conn *Conn
}

// ConnOf returns the recorded connection with a local address, nil if it is none.
func ConnOf(local net.Addr) *Conn {
	of, _ := local.(localAddr)
	return of.conn
}

// ClosedAt is when this side closed a recorded connection; zero if it did not.
func ClosedAt(conn net.Conn) time.Time {
	if recorded := recordedOf(conn); recorded != nil {
		if at := recorded.closedAt.Load(); at != nil {
			return *at
		}
	}
	return time.Time{}
}

// ResetOf is the error of a read that a reset, or a lost route, ended on a recorded connection; "" if none did.
func ResetOf(conn net.Conn) string {
	if recorded := recordedOf(conn); recorded != nil {
		if text := recorded.reset.Load(); text != nil {
			return *text
		}
	}
	return ""
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	if text := c.note(err); text != nil && !errors.Is(err, io.EOF) {
		c.reset.CompareAndSwap(nil, text)
	}
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	c.note(err)
	return n, err
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	at := time.Now()
	err := c.Conn.Close()
	c.close.Do(func() {
		c.closedAt.Store(&at)
		c.log.closed(c, at)
	})
	return err
}

// note keeps the first error that came from outside: it says whether the server closed first, and how. An error of a
// pending Read that comes from the client's own Close or deadline does not say that. It returns what it keeps.
func (c *Conn) note(err error) *string {
	if err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	text := err.Error()
	c.broken.CompareAndSwap(nil, &text)
	return &text
}

func (c *Conn) appendLine(lines []byte, at time.Time) []byte {
	lines = append(lines, `{"kind":"close","id":`...)
	lines = strconv.AppendUint(lines, c.id, 10)
	lines = append(lines, `,"time_us":`...)
	lines = record.AppendTime(lines, at)
	lines = append(lines, `,"bytes_sent":`...)
	lines = strconv.AppendInt(lines, c.sent.Load(), 10)
	lines = append(lines, `,"bytes_received":`...)
	lines = strconv.AppendInt(lines, c.received.Load(), 10)
	lines = append(lines, `,"error":`...)
	if broken := c.broken.Load(); broken != nil {
		lines = record.AppendString(lines, *broken)
	} else {
		lines = append(lines, "null"...)
	}
	return append(lines, "}\n"...)
}
