// Package flow reduces a packet capture to one record for each TCP connection.
//
// A connection is a four-tuple and an initial sequence number: a SYN with
// another initial sequence number on the same four-tuple begins another one.
// docs/flows.md defines each field.
package flow

import "net/netip"

// Side is an end of a connection.
type Side uint8

// The two ends, and the values for neither and for both of them.
const (
	Client Side = iota
	Server
	Nobody
	Both
)

func (s Side) String() string {
	return [...]string{"client", "server", "none", "both"}[s]
}

// CloseKind says what began the end of a connection.
type CloseKind uint8

// The kinds of a connection's end.
const (
	NotClosed CloseKind = iota
	ClosedByFIN
	ClosedByRST
)

func (k CloseKind) String() string {
	return [...]string{"none", "fin", "rst"}[k]
}

// Instant is a time in nanoseconds since the Unix epoch, if there is one.
type Instant struct {
	Ns    int64
	Known bool
}

// Get returns the time, and whether there is one.
func (i Instant) Get() (ns int64, known bool) { return i.Ns, i.Known }

// Flow is one TCP connection.
type Flow struct {
	ID           uint64 // from 1, in the order of the connections' first packets
	ReusedPortOf uint64 // ID of the former connection of this four-tuple, or 0

	Client, Server End
	ClientInferred bool // neither SYN nor SYN-ACK says which end is the client

	FirstPacket     uint64 // its number in the capture, from 1
	FirstNs, LastNs int64
	FineClock       bool // some packet's clock ticks finer than a microsecond

	SYNNs            []int64 // the client's SYNs; the first listMax of them
	SYNs             uint32
	SYNACKNs         []int64 // the server's SYN-ACKs; the first listMax of them
	SYNACKs          uint32
	Established      bool
	HandshakeACK     Instant
	SimultaneousOpen bool

	ClientHello Instant // of the handshake of TLS, as are the next three
	ServerHello Instant
	ClientReply Instant
	TLSEnd      Instant

	FirstFINBy, FirstRSTBy Side // or Nobody
	FirstRST               Instant
	ClosedBy               Side // or Nobody
	CloseKind              CloseKind
	SimultaneousClose      bool
	TimeWaitOwner          Side // any
	TimeWaitKnown          bool // else the capture does not show the owner

	TruncatedEnd  bool
	StrayPackets  uint32
	SequenceExact bool
}

// End is one end of a connection and what it sent.
type End struct {
	Address         netip.AddrPort
	ISN             uint32 // initial sequence number
	ISNKnown        bool
	Packets         uint64
	PayloadBytes    uint64 // in all, repeated ones too
	UniqueBytes     uint64 // each byte of the sequence space once
	MissingBytes    uint64 // of the sequence space, never seen
	Retransmissions uint32 // segments with a byte that had been seen
	OutOfOrder      uint32 // segments with a new byte below the highest seen
	DuplicateACKs   uint32
	RSTs            uint32
	FirstData       Instant
	LastData        Instant
	FIN             Instant
}

// HandshakeNs returns the time from the first SYN to the ACK that completed the
// handshake.
func (f *Flow) HandshakeNs() (ns int64, known bool) {
	if len(f.SYNNs) == 0 || !f.HandshakeACK.Known {
		return 0, false
	}
	return f.HandshakeACK.Ns - f.SYNNs[0], true
}

// Ticks turns nanoseconds into whole ticks. It rounds down, before the epoch
// too.
func Ticks(ns, tickNs int64) int64 {
	t := ns / tickNs
	if ns%tickNs < 0 {
		t--
	}
	return t
}

// Microseconds turns nanoseconds into whole microseconds, as Ticks.
func Microseconds(ns int64) int64 { return Ticks(ns, 1000) }
