package upstream

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestKindsAreNamedAfterWhatTheSystemSays(t *testing.T) {
	system := func(number syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", number)}
	}
	for want, errs := range map[string][]error{
		"refused":               {system(syscall.ECONNREFUSED)},
		"reset":                 {system(syscall.ECONNRESET)},
		"address-not-available": {system(syscall.EADDRNOTAVAIL)},
		"unreachable":           {system(syscall.ENETUNREACH), system(syscall.EHOSTUNREACH)},
		"timeout":               {system(syscall.ETIMEDOUT), os.ErrDeadlineExceeded},
		"canceled":              {context.Canceled, errEnded},
		"other":                 {errors.New("something else"), system(syscall.EMFILE)},
	} {
		for _, err := range errs {
			if got := Kinds[kindOf(err)]; got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
	}
}
