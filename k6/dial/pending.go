package dial

import (
	"context"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"connlab/k6/record"
)

// lookDelay is how long after connect(2) the local address is read. A dial that connects sooner does not need it: its
// connection has the address. One that fails later has it no longer, and without its port the analysis could not join
// it with its packets.
const lookDelay = 20 * time.Millisecond

// pending is a dial under way.
type pending struct {
	id, vu uint64

	mu     sync.Mutex
	start  time.Time
	local  string
	remote string
	look   *time.Timer
}

type pendingKey struct{}

// noteSocket is the net.Dialer's ControlContext: it runs between socket(2) and connect(2), names being resolved already.
func noteSocket(connectTimeout time.Duration) func(context.Context, string, string, syscall.RawConn) error {
	delay := min(lookDelay, connectTimeout/4)
	return func(ctx context.Context, _, address string, socket syscall.RawConn) error {
		if dial, _ := ctx.Value(pendingKey{}).(*pending); dial != nil {
			dial.connecting(beginning(ctx, connectTimeout), address, socket, delay)
		}
		return nil
	}
}

// beginning is when a dial's timeout began to run, the moment before its socket was made: counted from connect(2), a dial
// that was given up in time could seem to have been given up early.
func beginning(ctx context.Context, connectTimeout time.Duration) time.Time {
	now := time.Now()
	if deadline, bounded := ctx.Deadline(); bounded {
		if began := deadline.Add(-connectTimeout); began.Before(now) {
			return began
		}
	}
	return now
}

// connecting notes what connect(2) is about to do. A dial does not begin before the request that asks for it, whose own
// timeout may be the shorter one.
func (d *pending) connecting(began time.Time, address string, socket syscall.RawConn, delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if began.After(d.start) {
		d.start = began
	}
	d.remote = address
	d.look = time.AfterFunc(delay, func() {
		local := localAddress(socket)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.local == "" {
			d.local = local
		}
	})
}

// settle replaces what was read while the dial was under way by what its connection says, and returns its start.
func (d *pending) settle(local, remote string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.local, d.remote = local, remote
	return d.start
}

func (d *pending) appendLine(lines []byte, at time.Time, err error) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.look != nil {
		d.look.Stop()
	}
	lines = append(lines, `{"kind":"dial","id":`...)
	lines = strconv.AppendUint(lines, d.id, 10)
	lines = append(lines, `,"vu":`...)
	lines = strconv.AppendUint(lines, d.vu, 10)
	lines = append(lines, `,"time_us":`...)
	lines = record.AppendTime(lines, d.start)
	lines = append(lines, `,"duration_us":`...)
	lines = record.AppendMicroseconds(lines, at.Sub(d.start))
	lines = append(lines, `,"local":`...)
	lines = record.AppendStringOrNull(lines, d.local)
	lines = append(lines, `,"remote":`...)
	lines = record.AppendStringOrNull(lines, d.remote)
	lines = append(lines, `,"error":`...)
	lines = record.AppendStringOrNull(lines, textOf(err))
	lines = append(lines, `,"error_kind":`...)
	lines = record.AppendStringOrNull(lines, kindOf(err))
	return append(lines, "}\n"...)
}

// localAddress reads the address that the kernel chose for a socket that is still connecting, or returns "".
func localAddress(socket syscall.RawConn) string {
	var local netip.AddrPort
	err := socket.Control(func(fd uintptr) {
		name, err := syscall.Getsockname(int(fd))
		if err != nil {
			return
		}
		switch name := name.(type) {
		case *syscall.SockaddrInet4:
			local = netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port))
		case *syscall.SockaddrInet6:
			local = netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port))
		}
	})
	if err != nil || local.Port() == 0 {
		return ""
	}
	return local.String()
}
