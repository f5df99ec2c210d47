package probe

import (
	"context"
	"net/http"
	"time"
)

const (
	readyInterval = 50 * time.Millisecond
	readyTimeout  = 2 * time.Second
)

// WaitReady asks the address until it answers 200, or the context is done. It connects only while listening says that a
// program accepts connections on the address's port (Listening.Now).
func WaitReady(ctx context.Context, address string, listening func() (bool, error)) error {
	client := NewClient(readyTimeout)
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		listens, err := listening()
		if err != nil {
			return err
		}
		if listens {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
			if err != nil {
				return err
			}
			// A role that is starting may well refuse, reset or answer 503: each is just "not yet".
			if status, _, err := Do(client, request); err == nil && status == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// WaitListening returns once something listens (Listening.Now), or when the context is done: it connects to nobody.
func WaitListening(ctx context.Context, listening func() (bool, error)) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		if listens, err := listening(); err != nil || listens {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
