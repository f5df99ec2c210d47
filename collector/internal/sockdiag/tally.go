package sockdiag

import (
	"cmp"
	"net/netip"
	"slices"

	"connlab/collector/internal/management"
)

// A Side says on which end of a connection this namespace is.
type Side uint8

// The sides of a connection: the server's is the one whose port listens here, or did earlier.
const (
	Client Side = iota
	Server
)

// String is the side's name in the raw files.
func (s Side) String() string {
	if s == Server {
		return "server"
	}
	return "client"
}

// A Group is a number of sockets that differ in the client's port alone. Port is the server's.
type Group struct {
	State       State
	Side        Side
	Port        uint16
	Local, Peer netip.Addr
	Count       int
}

type groupKey struct {
	state       State
	side        Side
	port        uint16
	local, peer netip.Addr
}

// A Tally counts sockets by state, side, server port and both addresses, without the lab's own traffic. It may be
// used again and again; it remembers each port that ever listened, so that the TIME_WAIT of a server that has ended
// still counts as a server's.
type Tally struct {
	everything bool
	metrics    uint16
	listened   map[uint16]struct{}
	counts     map[groupKey]int
	groups     []Group
	unaccepted []Socket
}

// NewTally returns a tally that knows no listener yet; with everything it counts the lab's own traffic too. It does not
// count connections to the collector's own metrics port; 0 is not a port.
func NewTally(everything bool, metrics uint16) *Tally {
	return &Tally{everything: everything, metrics: metrics, listened: map[uint16]struct{}{}, counts: map[groupKey]int{}}
}

// Listens tells the tally which ports listen now.
func (t *Tally) Listens(listeners []Listener) {
	for _, l := range listeners {
		if _, known := t.listened[l.Port]; !known {
			t.listened[l.Port] = struct{}{}
		}
	}
}

// Ports is how many ports have listened so far.
func (t *Tally) Ports() int { return len(t.listened) }

// Add counts a socket.
func (t *Tally) Add(s Socket) {
	// A client of the load may have one of these ports as its own; management is on the loopback alone.
	if !t.everything && s.Peer.Addr().IsLoopback() && (management.IsPort(s.Local.Port()) || management.IsPort(s.Peer.Port())) {
		return
	}
	// The collector listens there, so no other program has this port here; on another host any program may have it.
	if t.metrics != 0 && (s.Local.Port() == t.metrics || s.Peer.Addr().IsLoopback() && s.Peer.Port() == t.metrics) {
		return
	}
	k := groupKey{state: s.State, side: Client, port: s.Peer.Port(), local: s.Local.Addr(), peer: s.Peer.Addr()}
	if _, listened := t.listened[s.Local.Port()]; listened {
		k.side, k.port = Server, s.Local.Port()
		// What its program has closed is in another state.
		if s.Unowned && (s.State == Established || s.State == CloseWait) {
			t.unaccepted = append(t.unaccepted, s)
		}
	}
	t.counts[k]++
}

// TakeUnaccepted returns the connections counted since the last call that wait in an accept queue, in a fixed order,
// and starts anew. The slice is the tally's own and changes with the next call.
func (t *Tally) TakeUnaccepted() []Socket {
	found := t.unaccepted
	t.unaccepted = t.unaccepted[:0]
	slices.SortFunc(found, func(a, b Socket) int { return cmp.Or(a.Local.Compare(b.Local), a.Peer.Compare(b.Peer)) })
	return found
}

// Take returns the groups counted since the last call, in a fixed order, and starts anew. The slice is the tally's
// own and changes with the next call.
func (t *Tally) Take() []Group {
	t.groups = t.groups[:0]
	for k, count := range t.counts {
		t.groups = append(t.groups, Group{State: k.state, Side: k.side, Port: k.port, Local: k.local, Peer: k.peer, Count: count})
	}
	clear(t.counts)
	slices.SortFunc(t.groups, func(a, b Group) int {
		return cmp.Or(
			cmp.Compare(a.State, b.State), cmp.Compare(a.Side, b.Side), cmp.Compare(a.Port, b.Port),
			a.Local.Compare(b.Local), a.Peer.Compare(b.Peer),
		)
	})
	return t.groups
}
