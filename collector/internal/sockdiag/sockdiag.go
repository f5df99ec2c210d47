// Package sockdiag asks the kernel for the TCP sockets of a network namespace (sock_diag(7), linux/inet_diag.h).
//
// The requests are the lab's own: the kernel itself filters by state, so that a question about the listeners costs the
// same whatever the number of other sockets, and one about the connections does not carry TIME_WAIT with it.
package sockdiag

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A State is a TCP state in the kernel's numbering (include/net/tcp_states.h).
type State uint8

// The states of a TCP socket.
const (
	Established State = iota + 1
	SynSent
	SynRecv
	FinWait1
	FinWait2
	TimeWait
	Close
	CloseWait
	LastAck
	Listen
	Closing
)

var stateNames = [...]string{
	Established: "ESTABLISHED", SynSent: "SYN_SENT", SynRecv: "SYN_RECV", FinWait1: "FIN_WAIT1", FinWait2: "FIN_WAIT2",
	TimeWait: "TIME_WAIT", Close: "CLOSE", CloseWait: "CLOSE_WAIT", LastAck: "LAST_ACK", Listen: "LISTEN", Closing: "CLOSING",
}

// String is the kernel's spelling of the state.
func (s State) String() string {
	if int(s) < len(stateNames) && stateNames[s] != "" {
		return stateNames[s]
	}
	return fmt.Sprintf("STATE_%d", uint8(s))
}

// A StateSet chooses sockets by their state.
type StateSet uint32

// The sets that the lab asks for. The kernel counts a TIME_WAIT socket that still waits for the peer's FIN as FIN_WAIT2.
const (
	Listeners   StateSet = 1 << Listen
	TimeWaiting StateSet = 1 << TimeWait
	Connections StateSet = 1<<Established | 1<<SynSent | 1<<SynRecv | 1<<FinWait1 | 1<<FinWait2 |
		1<<Close | 1<<CloseWait | 1<<LastAck | 1<<Closing
)

// A Socket is one TCP socket that does not listen. An IPv4 peer of a dual-stack socket has its IPv4 address.
type Socket struct {
	State       State
	Local, Peer netip.AddrPort
}

// A Listener is one listening TCP socket.
type Listener struct {
	Address netip.Addr
	Port    uint16
	// Depth is the number of connections in the accept queue, Limit the backlog: the kernel takes one more than that.
	Depth, Limit uint32
	// Drops counts what this socket turned away since it was made.
	Drops uint32
}

const (
	// TCPDIAG_GETSOCK, the first request of its kind, answers for IPv4 and IPv6 in one walk over the kernel's
	// sockets; the later SOCK_DIAG_BY_FAMILY takes a walk for each family.
	messageType = 18

	requestBytes = 60 // struct inet_diag_req
	replyBytes   = 72 // struct inet_diag_msg

	attributeSKMemInfo = 7 // INET_DIAG_SKMEMINFO
	skMemInfoDrops     = 8 // SK_MEMINFO_DROPS, an index into the attribute's array of uint32

	// The kernel fills up to 32 KiB for each read of a dump.
	bufferBytes = 32 << 10
)

// A Conn asks about the network namespace it was dialled in.
type Conn struct {
	netlink *netlink.Conn
}

// Dial opens a netlink socket in the network namespace of the calling thread.
func Dial() (*Conn, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, &netlink.Config{MessageBufferSize: bufferBytes})
	if err != nil {
		return nil, fmt.Errorf("sock_diag: %w", err)
	}
	return &Conn{netlink: conn}, nil
}

// Close closes the netlink socket.
func (c *Conn) Close() error { return c.netlink.Close() }

// Listeners appends all listening sockets to the slice.
func (c *Conn) Listeners(listeners []Listener) ([]Listener, error) {
	err := c.dump(request(Listeners, attributeSKMemInfo), func(reply []byte) error {
		listener, err := decodeListener(reply)
		listeners = append(listeners, listener)
		return err
	})
	return listeners, err
}

// Sockets calls visit for each socket in one of the states.
func (c *Conn) Sockets(states StateSet, visit func(Socket)) error {
	return c.dump(request(states, 0), func(reply []byte) error {
		socket, err := decodeSocket(reply)
		if err == nil {
			visit(socket)
		}
		return err
	})
}

// dump sends one request and calls visit for each reply; the first error ends it.
func (c *Conn) dump(request []byte, visit func(reply []byte) error) error {
	message := netlink.Message{
		Header: netlink.Header{Type: messageType, Flags: netlink.Request | netlink.Dump},
		Data:   request,
	}
	if _, err := c.netlink.Send(message); err != nil {
		return fmt.Errorf("sock_diag: %w", err)
	}
	for reply, err := range c.netlink.ReceiveIter() {
		if err == nil {
			err = visit(reply.Data)
		}
		if err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
	}
	return nil
}

// request builds a struct inet_diag_req: family, address lengths, the extensions asked for, the socket's identity
// (unused in a dump), states, dump state.
func request(states StateSet, attribute int) []byte {
	b := make([]byte, requestBytes)
	if attribute > 0 {
		b[3] = 1 << (attribute - 1)
	}
	binary.NativeEndian.PutUint32(b[52:], uint32(states))
	return b
}

// decodeSocket reads a struct inet_diag_msg: family, state, timer, retransmits, then struct inet_diag_sockid with
// both ports and both addresses in network order.
func decodeSocket(reply []byte) (Socket, error) {
	if len(reply) < replyBytes {
		return Socket{}, fmt.Errorf("reply of %d bytes, want at least %d", len(reply), replyBytes)
	}
	local, err := decodeAddress(reply[0], reply[8:24])
	if err != nil {
		return Socket{}, err
	}
	peer, err := decodeAddress(reply[0], reply[24:40])
	if err != nil {
		return Socket{}, err
	}
	return Socket{
		State: State(reply[1]),
		Local: netip.AddrPortFrom(local, binary.BigEndian.Uint16(reply[4:])),
		Peer:  netip.AddrPortFrom(peer, binary.BigEndian.Uint16(reply[6:])),
	}, nil
}

func decodeAddress(family byte, b []byte) (netip.Addr, error) {
	switch family {
	case unix.AF_INET:
		return netip.AddrFrom4([4]byte(b)), nil
	case unix.AF_INET6:
		// A dual-stack socket, as Java's are, carries IPv4 in mapped form.
		return netip.AddrFrom16([16]byte(b)).Unmap(), nil
	}
	return netip.Addr{}, fmt.Errorf("unknown address family %d", family)
}

// decodeListener reads a reply about a listening socket, whose queue fields hold the accept queue.
func decodeListener(reply []byte) (Listener, error) {
	socket, err := decodeSocket(reply)
	if err != nil {
		return Listener{}, err
	}
	listener := Listener{
		Address: socket.Local.Addr(),
		Port:    socket.Local.Port(),
		Depth:   binary.NativeEndian.Uint32(reply[56:]),
		Limit:   binary.NativeEndian.Uint32(reply[60:]),
	}
	attributes, err := netlink.NewAttributeDecoder(reply[replyBytes:])
	if err != nil {
		return Listener{}, err
	}
	for attributes.Next() {
		if attributes.Type() != attributeSKMemInfo {
			continue
		}
		memory := attributes.Bytes()
		if len(memory) < 4*(skMemInfoDrops+1) {
			return Listener{}, fmt.Errorf("socket memory of %d bytes holds no drops", len(memory))
		}
		listener.Drops = binary.NativeEndian.Uint32(memory[4*skMemInfoDrops:])
	}
	return listener, attributes.Err()
}
