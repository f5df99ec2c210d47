package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// How long a name may take to be known: a backend's namespace may come up at the same moment as the gateway's.
const (
	resolveMax   = 10 * time.Second
	resolveAgain = 100 * time.Millisecond
)

// An Address is one upstream server.
type Address struct {
	Name     string // host:port, as configured; requests carry it as their Host
	Resolved string // the IPv4 address and the port that connections go to
}

// Resolve looks each name up only once, so that a dial is a connect(2) and nothing else.
func Resolve(ctx context.Context, names []string) ([]Address, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveMax)
	defer cancel()
	addresses := make([]Address, 0, len(names))
	for _, name := range names {
		host, port, err := net.SplitHostPort(name)
		if err != nil {
			return nil, err
		}
		address, err := lookup(ctx, host)
		if err != nil {
			return nil, fmt.Errorf("CONNLAB_UPSTREAMS: %s is not known: %w", host, err)
		}
		addresses = append(addresses, Address{Name: name, Resolved: net.JoinHostPort(address, port)})
	}
	return addresses, nil
}

func lookup(ctx context.Context, host string) (string, error) {
	var last error
	for {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
		if err == nil && len(found) > 0 {
			return found[0].Unmap().String(), nil
		}
		// When the time is up, the error before that says more.
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		select {
		case <-ctx.Done():
			return "", last
		case <-time.After(resolveAgain):
		}
	}
}
