// Package probe speaks HTTP to a role's management port without leaving a trace in what the lab measures: it closes
// its connections by RST, so that neither end keeps a TIME_WAIT socket.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// BodyBytesMax bounds an answer.
const BodyBytesMax = 4 << 20

// NewClient returns a client whose connections end by RST. It never sends "Connection: close", which would make the
// server close first and keep TIME_WAIT; call CloseIdleConnections when done. It follows no redirect and no proxy.
func NewClient(timeout time.Duration) *http.Client { return newClient(timeout, nil) }

// NewClientWhile returns a client that connects only while the role accepts connections.
func NewClientWhile(listening *Listening, timeout time.Duration) *http.Client {
	return newClient(timeout, listening)
}

func newClient(timeout time.Duration, listening *Listening) *http.Client {
	dialer := net.Dialer{}
	return &http.Client{
		Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 1,
			// The role is asked over loopback, a name that its certificate need not have.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if listening != nil {
					if listens, err := listening.Now(); err != nil || !listens {
						return nil, errors.Join(fmt.Errorf("nobody accepts connections on %s", address), err)
					}
				}
				conn, err := dialer.DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				// SO_LINGER of 0 s: close sends RST instead of FIN.
				if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
					_ = conn.Close()
					return nil, err
				}
				return conn, nil
			},
		},
	}
}

// Do sends a request and reads the whole answer.
func Do(client *http.Client, request *http.Request) (status int, body []byte, err error) {
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(response.Body, BodyBytesMax+1))
	if err == nil && len(body) > BodyBytesMax {
		err = fmt.Errorf("the answer of %s is longer than %d bytes", request.URL, BodyBytesMax)
	}
	return response.StatusCode, body, err
}
