package upstream

import (
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// lookDelay is how long after connect(2) the local address is read. A dial that connects sooner does not need it: its
// connection has the address. One that fails later has it no longer, and without its port the analysis could not join
// it with its packets.
const lookDelay = 20 * time.Millisecond

// pending is a dial under way.
type pending struct {
	id     int64
	remote string
	// Before the timeout begins to run: counted from connect(2), a dial that was given up in time could seem to have been
	// given up early.
	start time.Time

	mu    sync.Mutex
	local string
	timer *time.Timer
}

// look is a net.Dialer's Control: it runs between socket(2) and connect(2).
func (d *pending) look(timeout time.Duration) func(string, string, syscall.RawConn) error {
	delay := lookDelay
	if timeout > 0 {
		delay = min(delay, timeout/4)
	}
	return func(_, _ string, socket syscall.RawConn) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.timer = time.AfterFunc(delay, func() {
			local := localAddress(socket)
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.local == "" {
				d.local = local
			}
		})
		return nil
	}
}

// settle ends the watch and returns the local address, "" if it is not known. A connection knows its own.
func (d *pending) settle(local string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	if local != "" {
		d.local = local
	}
	return d.local
}

// localAddress reads the address that the kernel chose for a socket that is still connecting, or returns "".
func localAddress(socket syscall.RawConn) string {
	var local netip.AddrPort
	err := socket.Control(func(fd uintptr) {
		if name, err := syscall.Getsockname(int(fd)); err == nil {
			if name, ok := name.(*syscall.SockaddrInet4); ok {
				local = netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port))
			}
		}
	})
	if err != nil || local.Port() == 0 {
		return ""
	}
	return local.String()
}
