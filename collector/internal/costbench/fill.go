package main

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"connlab/collector/internal/netns"
)

const (
	port    = "8080"
	dialers = 8
	// How many connections send something in each second of work.
	sendsPerSecond = 100
)

// Each address of the peer's is a destination with a port range of its own, and a group of its own in the records.
var peerAddresses = []string{"10.99.0.11", "10.99.0.12", "10.99.0.13", "10.99.0.14"}

// filled is a namespace full of sockets.
type filled struct {
	peer     *netns.Peer
	listener net.Listener
	open     []net.Conn
}

// fill makes sockets in TIME_WAIT and open connections to a server in a namespace of its own: as in the lab, this
// namespace holds one end of each connection. The connections stay until stop is called.
func fill(timeWait, open int) (*filled, error) {
	peer, err := netns.NewPeer(peerAddresses...)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"ipv4/ip_local_port_range": "1024 65000",
		// No TIME_WAIT socket may be used again for a new connection.
		"ipv4/tcp_tw_reuse": "0",
	} {
		if err := os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0); err != nil {
			return nil, err
		}
	}
	var listener net.Listener
	peer.Do(func() { listener, err = net.Listen("tcp4", ":"+port) })
	if err != nil {
		return nil, err
	}
	go serve(listener)
	if err := dialAll(timeWait, func(conn net.Conn) error {
		// The client closes first and keeps TIME_WAIT; the server answers with its own close.
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, conn)
		return errors.Join(err, conn.Close())
	}); err != nil {
		return nil, err
	}
	var mutex sync.Mutex
	var kept []net.Conn
	if err := dialAll(open, func(conn net.Conn) error {
		mutex.Lock()
		defer mutex.Unlock()
		kept = append(kept, conn)
		return nil
	}); err != nil {
		return nil, err
	}
	return &filled{peer, listener, kept}, nil
}

// work lets the open connections send one after the other, until it is asked to end.
func (f *filled) work() (end func() error) {
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		ticker := time.NewTicker(time.Second / sendsPerSecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				ended <- nil
				return
			case <-ticker.C:
			}
			if _, err := f.open[i%len(f.open)].Write([]byte{0}); err != nil {
				<-stop
				ended <- err
				return
			}
		}
	}()
	return func() error {
		close(stop)
		return <-ended
	}
}

func (f *filled) stop() {
	for _, conn := range f.open {
		_ = conn.Close()
	}
	_ = f.listener.Close()
	f.peer.Close()
}

// serve closes each connection once its client has.
func serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}()
	}
}

// dialAll makes connections, spread over the peer's addresses, and hands each to use.
func dialAll(count int, use func(net.Conn) error) error {
	errs := make([]error, dialers)
	var group sync.WaitGroup
	for d := range dialers {
		group.Go(func() {
			for i := d; i < count; i += dialers {
				conn, err := net.Dial("tcp4", net.JoinHostPort(peerAddresses[i%len(peerAddresses)], port))
				if err == nil {
					err = use(conn)
				}
				if err != nil {
					errs[d] = err
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
