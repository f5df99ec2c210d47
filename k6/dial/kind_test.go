package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestKindsOfFailures(t *testing.T) {
	connect := func(err error) error {
		return fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)})
	}
	for _, c := range []struct {
		err  error
		kind string
	}{
		{nil, ""},
		{connect(syscall.ECONNREFUSED), "refused"},
		{connect(syscall.ECONNRESET), "reset"},
		{connect(syscall.EADDRNOTAVAIL), "address-not-available"},
		{connect(syscall.ENETUNREACH), "unreachable"},
		{connect(syscall.EHOSTUNREACH), "unreachable"},
		{connect(syscall.ETIMEDOUT), "timeout"},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, "timeout"},
		{&net.DNSError{IsTimeout: true}, "timeout"},
		{&net.DNSError{IsNotFound: true}, "other"},
		{connect(syscall.EMFILE), "other"},
		{errEnded, "canceled"},
		{errHalfOpen, "half-open"},
		{fmt.Errorf("wrapped: %w", context.Canceled), "canceled"},
		{errors.New("k6's blocklist"), "other"},
	} {
		if kind := kindOf(c.err); kind != c.kind {
			t.Errorf("%v is %q, not %q", c.err, kind, c.kind)
		}
	}
}
