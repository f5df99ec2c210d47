package probe

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// goodbyeMax bounds the wait for a server that does not answer the end of a connection.
const goodbyeMax = time.Second

// Handshakes is what a listener of TLS takes, as handshakes with it have shown.
type Handshakes struct {
	Oldest string `json:"oldest"` // that it took
	Newest string `json:"newest"`
	HTTP2  bool   `json:"http2"` // whether it chose HTTP/2 when that was offered
	// Tickets says whether a session was resumed by a ticket; null if TLS 1.2 was not tried: in TLS 1.3 the ticket comes
	// after the handshake, with the first answer.
	Tickets *bool `json:"tickets"`
}

// Versions are those of TLS that Go's client speaks by itself, by the names that nginx and HAProxy have for them.
var Versions = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

// TLS finds out what a listener takes from a version on. Older ones are not tried: a server may log a handshake that it
// refuses. No handshake carries a request, and each connection ends by RST.
func TLS(address string, oldest uint16, timeout time.Duration) (*Handshakes, error) {
	sessions := tls.NewLRUClientSessionCache(1)
	// A server that has chosen HTTP/2 may say in its log that nobody spoke it, so that is offered only once.
	offer := func(newest uint16, protocols ...string) (tls.ConnectionState, error) {
		return handshake(address, timeout, &tls.Config{
			InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, MaxVersion: newest, NextProtos: protocols,
			ClientSessionCache: sessions,
		})
	}
	newest, err := offer(tls.VersionTLS13, "h2", "http/1.1")
	if err != nil {
		return nil, err
	}
	found := &Handshakes{Newest: name(newest.Version), HTTP2: newest.NegotiatedProtocol == "h2"}
	if oldest > tls.VersionTLS12 {
		found.Oldest = found.Newest
		return found, nil
	}
	_, first := offer(tls.VersionTLS12)
	again, second := offer(tls.VersionTLS12)
	found.Oldest, found.Tickets = name(tls.VersionTLS12), &again.DidResume
	return found, cmp.Or(first, second)
}

func name(version uint16) string { return strings.ReplaceAll(tls.VersionName(version), " ", "v") }

func handshake(address string, timeout time.Duration, config *tls.Config) (tls.ConnectionState, error) {
	dialer := net.Dialer{Timeout: timeout}
	plain, err := dialer.Dial("tcp", address)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer func() { _ = plain.Close() }()
	if err := errors.Join(plain.(*net.TCPConn).SetLinger(0), plain.SetDeadline(time.Now().Add(timeout))); err != nil {
		return tls.ConnectionState{}, err
	}
	config.ServerName = "connlab"
	conn := tls.Client(plain, config)
	if err := conn.Handshake(); err != nil {
		return tls.ConnectionState{}, err
	}
	// Where the client is done first, a RST at once would break off the server's side of the handshake, and the server
	// would log that. So the server hears of the end, and answers it.
	if errors.Join(conn.CloseWrite(), plain.SetReadDeadline(time.Now().Add(goodbyeMax))) == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
	return conn.ConnectionState(), nil
}
