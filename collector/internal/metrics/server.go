// Package metrics serves the sampler's last reading over HTTP, as OpenMetrics.
//
// A scrape reads nothing from the kernel, so it causes no walk over the namespace's sockets.
package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/expfmt"

	"connlab/collector/internal/latest"
)

// Path is the only path that is served.
const Path = "/metrics"

const (
	headerTimeout = 5 * time.Second
	writeTimeout  = 10 * time.Second
	// Longer than any usual interval between two scrapes, so that a scraper keeps its connection.
	idleTimeout = 5 * time.Minute
	headerBytes = 16 << 10
	// How long a client has to close a connection first.
	closeTimeout = time.Second
)

// A Server answers scrapes from its start to the end of its context.
type Server struct {
	listener net.Listener
	reading  func() (latest.Reading, bool)
	labels   []Label
	outside  atomic.Int64
}

// Listen opens the port, so that the collector learns of a taken port before it records anything.
func Listen(address netip.AddrPort, labels []Label, reading func() (latest.Reading, bool)) (*Server, error) {
	listener, err := net.Listen("tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return &Server{listener: listener, reading: reading, labels: labels}, nil
}

// Port is where it listens.
func (s *Server) Port() uint16 { return s.listener.Addr().(*net.TCPAddr).AddrPort().Port() }

// Connections is how many connections the port has taken from outside this namespace. The namespace's own counters
// include them, and do not distinguish them from the role's.
func (s *Server) Connections() int64 { return s.outside.Load() }

// Run serves until the context is done.
func (s *Server) Run(ctx context.Context) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	err := server.Serve(counting{s.listener, s, ctx})
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("metrics: %w", err)
}

// ServeHTTP answers GET /metrics, and refuses all else.
func (s *Server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path != Path {
		http.Error(w, "there is "+Path+" alone", http.StatusNotFound)
		return
	}
	if request.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "GET alone", http.StatusMethodNotAllowed)
		return
	}
	text, err := s.text()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
}

var format = expfmt.NewFormat(expfmt.TypeOpenMetrics)

// text returns the whole answer, so that its length is known: a client then knows when it has all of it, and can close
// first.
func (s *Server) text() ([]byte, error) {
	var text bytes.Buffer
	// No sample is better than a zero that nobody has read.
	if reading, known := s.reading(); known {
		for _, family := range families(reading, s.labels) {
			if _, err := expfmt.MetricFamilyToOpenMetrics(&text, family, expfmt.WithUnit()); err != nil {
				return nil, err
			}
		}
	}
	_, err := expfmt.FinalizeOpenMetrics(&text)
	return text.Bytes(), err
}

// counting hands out connections that leave no TIME_WAIT here, and counts those from outside the namespace.
type counting struct {
	net.Listener
	server  *Server
	context context.Context
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	local, peer := conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr)
	if !peer.IP.IsLoopback() && !peer.IP.Equal(local.IP) {
		c.server.outside.Add(1)
	}
	return &passive{TCPConn: conn.(*net.TCPConn), context: c.context}, nil
}

// passive is a connection that the other side closes first. The side that does so keeps TIME_WAIT, and the collector's
// would be among those of its role.
type passive struct {
	*net.TCPConn
	context context.Context
}

// Close waits for the client's FIN, though not for long; without one it ends the connection by RST.
func (p *passive) Close() error {
	if !p.closedByClient() {
		_ = p.SetLinger(0)
	}
	return p.TCPConn.Close()
}

func (p *passive) closedByClient() bool {
	if p.context.Err() != nil || p.SetReadDeadline(time.Now().Add(closeTimeout)) != nil {
		return false
	}
	// A client that continues to send gets no more time than one that does nothing.
	_, err := io.Copy(io.Discard, p.TCPConn)
	return err == nil
}
