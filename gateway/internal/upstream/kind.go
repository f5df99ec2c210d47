package upstream

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
)

// Kinds are the ways in which a dial can fail. The names are part of the format of dials.jsonl; the last one stands for
// every other failure.
var Kinds = [...]string{"timeout", "refused", "reset", "address-not-available", "unreachable", "canceled", "other"}

// A DialError is a dial's error, with the number of its record.
type DialError struct {
	ID  int64
	Err error
}

// Error implements error.
func (e *DialError) Error() string { return e.Err.Error() }

// Unwrap gives the system's own error.
func (e *DialError) Unwrap() error { return e.Err }

// Timeout says whether the dial timed out, as net.Error does.
func (e *DialError) Timeout() bool {
	var timeout net.Error
	return errors.As(e.Err, &timeout) && timeout.Timeout()
}

// kindOf is the index of an error's kind.
func kindOf(err error) int {
	var timeout net.Error
	name := "other"
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, errEnded):
		name = "canceled"
	case errors.Is(err, syscall.ECONNREFUSED):
		name = "refused"
	case errors.Is(err, syscall.ECONNRESET):
		name = "reset"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		name = "address-not-available"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		name = "unreachable"
	case errors.As(err, &timeout) && timeout.Timeout():
		name = "timeout"
	}
	return slices.Index(Kinds[:], name)
}
