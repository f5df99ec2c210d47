package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"connlab/gateway/internal/access"
	"connlab/gateway/internal/client"
	"connlab/gateway/internal/config"
	"connlab/gateway/internal/journal"
	"connlab/gateway/internal/management"
	"connlab/gateway/internal/proxy"
	"connlab/gateway/internal/upstream"
)

const (
	// How long requests in progress may take after SIGTERM: the same as nginx's worker_shutdown_timeout in the lab.
	graceMax = 5 * time.Second
	// How long the handler may then take to write the lines of requests that were cut short.
	drainMax = time.Second
	// How long a line may wait before it is written: the same as for nginx's access_log in the lab.
	flushPeriod = time.Second
)

// places is where a gateway listens and writes.
type places struct {
	raw, traffic, management string
}

// A gateway is everything that serves and records.
type gateway struct {
	grace                time.Duration
	handler              *proxy.Handler
	secured              bool // the traffic
	traffic, management  *http.Server
	listeners            [2]net.Listener
	pool                 *upstream.Pool
	files                []*journal.File
	stopFlushing, flushd chan struct{}
}

// open listens and makes the files, but serves nobody yet. The user has to correct what its error says.
func open(ctx context.Context, settings config.Config, places places, stderr io.Writer) (*gateway, error) {
	addresses, err := upstream.Resolve(ctx, settings.Upstreams)
	if err != nil {
		return nil, err
	}
	g := &gateway{grace: graceMax, stopFlushing: make(chan struct{}), flushd: make(chan struct{})}
	for _, name := range []string{"access.jsonl", "error.log", "dials.jsonl"} {
		file, err := journal.Create(filepath.Join(places.raw, name), stderr)
		if err != nil {
			return nil, errors.Join(err, g.closeFiles())
		}
		g.files = append(g.files, file)
	}
	faults := access.NewErrorLog(g.files[1])
	g.pool, err = upstream.NewPool(settings, upstream.NewLog(g.files[2]))
	if err != nil {
		return nil, errors.Join(err, g.closeFiles())
	}
	g.handler = proxy.New(addresses, g.pool, access.NewLog(g.files[0]), faults)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(settings.HTTP2 && settings.TLS)
	protocols.SetUnencryptedHTTP2(settings.HTTP2 && !settings.TLS)
	g.traffic = &http.Server{
		Handler:     g.handler,
		IdleTimeout: settings.ServerIdleTimeout,
		ConnContext: client.Context,
		ErrorLog:    log.New(faults, "", 0),

		ReadHeaderTimeout: settings.ServerReadHeaderTimeout,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: settings.HTTP2MaxConcurrentStreams},
	}
	if g.secured = settings.TLS; g.secured {
		g.traffic.TLSConfig, err = settings.Certificates.Server(settings.TLSMin, settings.TLSMax, settings.TLSSessionTickets)
		if err != nil {
			return nil, errors.Join(err, g.closeFiles())
		}
	}
	clients := &client.Counter{}
	g.management = &http.Server{
		Handler:  management.Handler(g.pool, g.traffic, g.handler, clients, addresses),
		ErrorLog: log.New(faults, "", 0),
	}
	// Go uses MPTCP if the kernel supports it; the other servers of the lab never do.
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	for i, address := range []string{places.traffic, places.management} {
		// IPv4, like the rest of the lab: an IPv6 socket would listen on both, and the kernel's figures would name
		// neither.
		listener, err := plain.Listen(ctx, "tcp4", address)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot listen: %w", err), g.closeFiles())
		}
		g.listeners[i] = listener
	}
	g.listeners[0] = client.Listener{Listener: g.listeners[0], Counter: clients}
	return g, nil
}

// serve answers until ctx ends, lets the requests in progress finish, and completes the record.
func (g *gateway) serve(ctx context.Context) error {
	go g.flushNowAndThen()
	failed := make(chan error, 2)
	var serving sync.WaitGroup
	for i, server := range []*http.Server{g.traffic, g.management} {
		serving.Go(func() {
			serve := server.Serve
			if i == 0 && g.secured {
				serve = func(listener net.Listener) error { return server.ServeTLS(listener, "", "") }
			}
			if err := serve(g.listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
	}
	var fault error
	select {
	case <-ctx.Done():
	case fault = <-failed:
	}
	lost := g.stop()
	serving.Wait()
	close(g.stopFlushing)
	<-g.flushd
	return errors.Join(fault, lost, g.closeFiles())
}

// stop ends the traffic first: the management port answers until then.
func (g *gateway) stop() error {
	grace, cancel := context.WithTimeout(context.Background(), g.grace)
	defer cancel()
	if g.traffic.Shutdown(grace) != nil {
		_ = g.traffic.Close()
	}
	drain, cancel := context.WithTimeout(context.Background(), drainMax)
	defer cancel()
	without := g.handler.Drain(drain)
	g.pool.Close()
	_ = g.management.Close()
	if without > 0 {
		return fmt.Errorf("its record is not complete: requests that did not end, and have no line: %d", without)
	}
	return nil
}

func (g *gateway) flushNowAndThen() {
	defer close(g.flushd)
	ticker := time.NewTicker(flushPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-g.stopFlushing:
			return
		case <-ticker.C:
			for _, file := range g.files {
				file.Flush()
			}
		}
	}
}

func (g *gateway) closeFiles() error {
	var errs []error
	for _, file := range g.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
