package dial

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.k6.io/k6/lib"
	"go.k6.io/k6/lib/netext"
)

// Dialer is a VU's dialer: k6's own, with a record of each dial.
type Dialer struct {
	*netext.Dialer

	log *Log
	vu  uint64
	// unclaimed has the last dial that began for no request.
	unclaimed atomic.Pointer[Attempt]
}

// Settings are what the extension changes of a VU's connections.
type Settings struct {
	ConnectTimeout time.Duration // bounds connect(2) alone, apart from the request's timeout
	TLSResumption  bool          // k6 itself has no cache of sessions, so it resumes none
}

// sessionsMax bounds a VU's cache of TLS sessions, one for each server.
const sessionsMax = 64

// Install replaces what a VU connects with, before its first request.
func (l *Log) Install(state *lib.State, settings Settings) error {
	dialer, ok := state.Dialer.(*netext.Dialer)
	if !ok {
		return fmt.Errorf("k6/x/connlab cannot record dials: the VU's dialer is a %T, not k6's own", state.Dialer)
	}
	transport, ok := state.Transport.(*http.Transport)
	if !ok {
		return fmt.Errorf("k6/x/connlab cannot record dials: the VU's transport is a %T, not k6's own", state.Transport)
	}
	dialer.Timeout = settings.ConnectTimeout
	dialer.ControlContext = noteSocket(settings.ConnectTimeout)
	recorded := &Dialer{Dialer: dialer, log: l, vu: state.VUID}
	state.Dialer = recorded
	transport.DialContext = recorded.DialContext
	// Docker's client may have put a proxy into the environment: the load must go to the targets.
	transport.Proxy = nil
	if settings.TLSResumption && transport.TLSClientConfig != nil && transport.TLSClientConfig.ClientSessionCache == nil {
		transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(sessionsMax)
	}
	state.Transport = &attempts{next: transport, state: state}
	return nil
}

// DialContext connects, as net.Dialer.DialContext does.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dial := d.log.begin(d.vu)
	attempt, _ := ctx.Value(attemptKey{}).(*Attempt)
	if attempt == nil {
		attempt = new(Attempt)
		d.unclaimed.Store(attempt)
	}
	attempt.dialled.Store(dial.id)
	conn, err := d.Dialer.DialContext(context.WithValue(ctx, pendingKey{}, dial), network, address)
	if err != nil {
		kind := kindOf(err)
		attempt.failed.Store(&kind)
		d.log.failedToConnect(dial, err)
		return nil, err
	}
	return d.log.connected(dial, conn), nil
}
