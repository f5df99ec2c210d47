package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// errEnded stands for the outcome of a dial that k6's end cut short.
var errEnded = fmt.Errorf("k6 ended while it was connecting: %w", context.Canceled)

// kindOf names the outcome of a dial, "" for a success. The names are part of the format of dials.jsonl.
func kindOf(err error) string {
	var timeout net.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errHalfOpen):
		return "half-open"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "address-not-available"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "unreachable"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	default:
		return "other"
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
