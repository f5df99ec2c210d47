package dial

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall lacks.
const tcpUserTimeout = 18

// halfOpen lets prepare change the socket, and holds the connection half open.
func (r *recorded) halfOpen(hold time.Duration, prepare func(fd int) error) (line, error) {
	r.t.Helper()
	listener := listen(r.t, "tcp4", "127.0.0.1:0")
	state := vuState()
	if err := r.Install(state, Settings{ConnectTimeout: time.Minute}); err != nil {
		r.t.Fatal(err)
	}
	dialer := state.Dialer.(*Dialer)
	note := dialer.ControlContext
	dialer.ControlContext = func(ctx context.Context, network, address string, socket syscall.RawConn) error {
		var err error
		if control := socket.Control(func(fd uintptr) { err = prepare(int(fd)) }); control != nil || err != nil {
			return errors.Join(control, err)
		}
		return note(ctx, network, address, socket)
	}
	err := HoldHalfOpen(r.t.Context(), state, listener.Addr().String(), hold)
	lines := r.lines()
	if len(lines) != 1 || lines[0].ErrorKind == nil {
		r.t.Fatalf("%+v", lines)
	}
	return lines[0], err
}

func TestAConnectionIsHeldHalfOpenForItsTime(t *testing.T) {
	began := time.Now()
	dial, err := newRecorded(t).halfOpen(100*time.Millisecond, func(int) error { return nil })
	if err != nil || *dial.ErrorKind != "half-open" || time.Since(began) < 100*time.Millisecond {
		t.Errorf("%v after %v, %+v", err, time.Since(began), dial)
	}
}

func TestAKernelThatGivesUpEarlierHasNotHeldIt(t *testing.T) {
	dial, err := newRecorded(t).halfOpen(time.Minute, func(fd int) error {
		// The kernel then gives up when it would repeat its SYN, a second later.
		return syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, tcpUserTimeout, 1)
	})
	if err == nil || !strings.Contains(err.Error(), "raise net.ipv4.tcp_syn_retries") || *dial.ErrorKind != "timeout" {
		t.Errorf("%v, %+v", err, dial)
	}
}
