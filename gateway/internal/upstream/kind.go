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
