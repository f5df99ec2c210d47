package probe

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"connlab/collector/internal/sockdiag"
)

// Listening says whether something listens on an address's port with an empty accept queue. Ask it before you ask the
// role. A refused connection would count as the role's (Tcp.ActiveOpens, Tcp.AttemptFails, Tcp.OutRsts). A connection
// that a paused role does not accept would stay in its queue, even after the client has given up, until further ones
// count as dropped (TcpExt.ListenOverflows).
type Listening struct {
	port      uint16
	mutex     sync.Mutex
	diag      *sockdiag.Conn
	listeners []sockdiag.Listener
}

// NewListening is about the port of the address, such as http://127.0.0.1:8081/path.
func NewListening(address string) (*Listening, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(target.Port(), 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	diag, err := sockdiag.Dial()
	if err != nil {
		return nil, err
	}
	return &Listening{port: uint16(port), diag: diag}, nil
}

// Now says whether something listens there at this moment, with an empty accept queue.
func (l *Listening) Now() (bool, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var err error
	l.listeners, err = l.diag.Listeners(l.listeners[:0])
	accepts := func(one sockdiag.Listener) bool { return one.Port == l.port && one.Depth == 0 }
	return slices.ContainsFunc(l.listeners, accepts), err
}

// Close gives up asking.
func (l *Listening) Close() error { return l.diag.Close() }
