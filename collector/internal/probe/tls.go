package probe

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"
)

// Handshakes is what a listener of TLS takes, as handshakes with it have shown.
type Handshakes struct {
	Oldest string `json:"oldest"` // that it takes, of the versions that Go knows from TLS 1.2 on
	Newest string `json:"newest"`
	HTTP2  bool   `json:"http2"` // whether it chose HTTP/2 when that was offered
	// Tickets says whether a session was resumed by a ticket; null if it takes TLS 1.3 alone, in which the ticket comes
	// after the handshake, with the first answer.
	Tickets *bool `json:"tickets"`
}

// TLS finds out what a listener takes. No handshake carries a request, and none is refused by either side but where the
// listener does not take TLS 1.2. It ends each connection by RST.
func TLS(address string, timeout time.Duration) (*Handshakes, error) {
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
	_, first := offer(tls.VersionTLS12)
	var alert tls.AlertError
	var failed *net.OpError
	if errors.As(first, &alert) || errors.As(first, &failed) && failed.Op == "remote error" {
		found.Oldest = found.Newest
		return found, nil
	}
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
	err = conn.Handshake()
	return conn.ConnectionState(), err
}
