package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"go.k6.io/k6/lib"
)

// errHalfOpen stands for a dial that stayed half open for the whole time.
var errHalfOpen = errors.New("held half open")

// HoldHalfOpen begins a connection for a VU, over IPv4, and holds it without ever completing its handshake: the server
// answers, and this kernel drops the answer before TCP sees it. So the server's kernel keeps a request in its SYN
// queue, and this one continues to send SYNs. It needs no privileges, and sends nothing that an ordinary connect(2)
// would not send.
//
// It returns nil when the time is over, or an error when k6 ends. The dial is recorded as failed, as "half-open".
func HoldHalfOpen(ctx context.Context, state *lib.State, address string, hold time.Duration) error {
	if state == nil {
		return errors.New("only a VU has connections, not the init code")
	}
	dialer, recorded := state.Dialer.(*Dialer)
	if !recorded {
		return errors.New("the VU's connections are not recorded")
	}
	if hold <= 0 {
		return errors.New("it must be held for a time")
	}
	return dialer.holdHalfOpen(ctx, address, hold)
}

func (d *Dialer) holdHalfOpen(ctx context.Context, address string, hold time.Duration) error {
	dial := d.log.begin(d.vu)
	deaf := *d.Dialer
	deaf.Timeout = hold
	deaf.ControlContext = func(ctx context.Context, network, remote string, socket syscall.RawConn) error {
		if err := dropAllReceived(socket); err != nil {
			return err
		}
		return d.Dialer.ControlContext(ctx, network, remote, socket)
	}
	conn, err := deaf.DialContext(context.WithValue(ctx, pendingKey{}, dial), "tcp4", address)
	var timeout net.Error
	switch {
	case err == nil:
		_ = d.log.connected(dial, conn).Close()
		return errors.New("the handshake was completed although its answer was to be dropped")
	case errors.Is(err, syscall.ETIMEDOUT):
		d.log.failedToConnect(dial, err)
		return fmt.Errorf("this kernel gave up asking before the time was over, raise net.ipv4.tcp_syn_retries: %w", err)
	case ctx.Err() == nil && errors.As(err, &timeout) && timeout.Timeout():
		d.log.failedToConnect(dial, errHalfOpen)
		return nil
	default:
		d.log.failedToConnect(dial, err)
		return err
	}
}

// ttlMax is more hops than a packet has left unless its sender means to: a server's packets begin with 64.
const ttlMax = 255

// dropAllReceived has the kernel drop what comes to a socket, as if nothing had come: every packet has too few hops left
// for it (RFC 5082). The kernel counts these as TcpExt.TCPMinTTLDrop.
func dropAllReceived(socket syscall.RawConn) error {
	var err error
	if control := socket.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MINTTL, ttlMax)
	}); control != nil {
		return control
	}
	return os.NewSyscallError("setsockopt IP_MINTTL", err)
}
