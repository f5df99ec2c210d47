// Package sockdiag asks the kernel for the TCP sockets of a network namespace (sock_diag(7), linux/inet_diag.h).
//
// The requests are the lab's own: the kernel itself filters by state, so that a question about the listeners costs the
// same whatever the number of other sockets, and one about the connections does not carry TIME_WAIT with it.
package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

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
	// Unowned says that no program has it: it waits to be accepted, or its program has closed it.
	Unowned bool
}

// A Listener is one listening TCP socket.
type Listener struct {
	Address netip.Addr
	Port    uint16
	// Depth is the number of connections in the accept queue, Limit the backlog: the kernel takes one more than that.
	Depth, Limit uint32
	// Drops counts what this socket turned away since it was made.
	Drops uint32
	// Inode is the socket's number, by which /proc/<pid>/fd names it: later sockets have greater ones.
	Inode uint32
}

const (
	// TCPDIAG_GETSOCK, the first request of its kind, answers for IPv4 and IPv6 in one walk over the kernel's
	// sockets; the later SOCK_DIAG_BY_FAMILY takes a walk for each family.
	messageType = 18

	headerBytes          = 16 // struct nlmsghdr
	attributeHeaderBytes = 4  // struct nlattr
	requestBytes         = 60 // struct inet_diag_req
	replyBytes           = 72 // struct inet_diag_msg

	attributeSKMemInfo = 7 // INET_DIAG_SKMEMINFO
	skMemInfoDrops     = 8 // SK_MEMINFO_DROPS, an index into the array of uint32 that the attribute is

	// The kernel fills up to 32 KiB for each read of a dump.
	bufferBytes = 32 << 10
)

// A Conn asks about the network namespace it was dialled in. It is not safe for use by several goroutines.
//
// It is a plain blocking socket with one buffer. With the sockets of github.com/mdlayher/netlink, which use the
// runtime's poller and copy what they receive, the listeners cost 2.5 times as much and 28,000 sockets 1.6 times.
type Conn struct {
	fd       int
	sequence uint32
	buffer   []byte
}

// Dial opens a netlink socket in the network namespace of the calling thread.
func Dial() (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("sock_diag: %w", err)
	}
	return &Conn{fd: fd, buffer: make([]byte, bufferBytes)}, nil
}

// Close closes the netlink socket.
func (c *Conn) Close() error { return unix.Close(c.fd) }

// Listeners appends all listening sockets to the slice.
func (c *Conn) Listeners(listeners []Listener) ([]Listener, error) {
	err := c.dump(request(Listeners, attributeSKMemInfo), func(reply []byte) error {
		listener, err := decodeListener(reply)
		if err == nil {
			listeners = append(listeners, listener)
		}
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

// dump sends one request and calls visit for each reply. After an error the connection is no longer usable.
func (c *Conn) dump(request []byte, visit func(reply []byte) error) error {
	c.sequence++
	binary.NativeEndian.PutUint32(request[8:], c.sequence)
	err := unix.Sendto(c.fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	for done := false; err == nil && !done; {
		var n int
		if n, err = unix.Read(c.fd, c.buffer); err == nil {
			done, err = eachReply(c.buffer[:n], c.sequence, visit)
		}
	}
	if err != nil {
		return fmt.Errorf("sock_diag: %w", err)
	}
	return nil
}

// request builds a netlink header and a struct inet_diag_req: family, address lengths, the extensions asked for, the
// socket's identity (unused in a dump), states, dump state.
func request(states StateSet, attribute int) []byte {
	b := make([]byte, headerBytes+requestBytes)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], messageType)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if attribute > 0 {
		b[headerBytes+3] = 1 << (attribute - 1)
	}
	binary.NativeEndian.PutUint32(b[headerBytes+52:], uint32(states))
	return b
}

// eachReply calls visit for each message of one part of a dump, and says whether it was the dump's last part.
func eachReply(part []byte, sequence uint32, visit func(reply []byte) error) (done bool, err error) {
	for len(part) > 0 {
		if len(part) < headerBytes {
			return false, fmt.Errorf("%d bytes are not a message", len(part))
		}
		var message []byte
		if message, part, err = cut(part, int(binary.NativeEndian.Uint32(part)), headerBytes); err != nil {
			return false, err
		}
		body := message[headerBytes:]
		switch kind := binary.NativeEndian.Uint16(message[4:]); {
		case binary.NativeEndian.Uint32(message[8:]) != sequence:
			return false, errors.New("an answer to another request")
		case kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR:
			// Both carry a number: negative if the dump, or the request, has failed.
			if len(body) < 4 {
				return false, errors.New("the end of an answer without its number")
			}
			if number := int32(binary.NativeEndian.Uint32(body)); number < 0 {
				return false, unix.Errno(-number)
			}
			return true, nil
		default:
			if err := visit(body); err != nil {
				return false, err
			}
		}
	}
	return false, nil
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
		// The socket's inode: the kernel makes it as a program accepts the connection.
		Unowned: binary.NativeEndian.Uint32(reply[68:]) == 0,
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
		Inode:   binary.NativeEndian.Uint32(reply[68:]),
	}
	listener.Drops, err = decodeDrops(reply[replyBytes:])
	return listener, err
}

// decodeDrops finds the drops in a reply's attributes.
func decodeDrops(attributes []byte) (uint32, error) {
	for len(attributes) > 0 {
		if len(attributes) < attributeHeaderBytes {
			return 0, fmt.Errorf("%d bytes are not an attribute", len(attributes))
		}
		kind := binary.NativeEndian.Uint16(attributes[2:])
		var attribute []byte
		var err error
		attribute, attributes, err = cut(attributes, int(binary.NativeEndian.Uint16(attributes)), attributeHeaderBytes)
		if err != nil {
			return 0, err
		}
		if kind != attributeSKMemInfo {
			continue
		}
		memory := attribute[attributeHeaderBytes:]
		if len(memory) < 4*(skMemInfoDrops+1) {
			return 0, fmt.Errorf("socket memory of %d bytes holds no drops", len(memory))
		}
		return binary.NativeEndian.Uint32(memory[4*skMemInfoDrops:]), nil
	}
	return 0, errors.New("no socket memory, and so no drops, in the reply")
}

// cut splits off a netlink item: the item states its own length, and the next one begins at a multiple of four bytes.
func cut(b []byte, length, lengthMin int) (item, rest []byte, err error) {
	if length < lengthMin || length > len(b) {
		return nil, nil, fmt.Errorf("an item of %d bytes in %d", length, len(b))
	}
	return b[:length], b[min((length+3)&^3, len(b)):], nil
}
