// Package packet finds the TCP segment in a captured packet.
//
// It reads headers only and takes lengths from the IP header, so a packet that
// the capture cut off (tcpdump -s 128) is as good as a whole one.
package packet

import (
	"encoding/binary"
	"net/netip"
)

// Address is an IP address; an IPv4 address stands in its mapped form
// ::ffff:a.b.c.d.
type Address struct {
	High, Low uint64
}

// mappedPrefix is what precedes an IPv4 address in Address.Low.
const mappedPrefix = 0xffff << 32

// AddressOf returns an address in the form in which Decode gives it.
func AddressOf(a netip.Addr) Address {
	bytes := a.As16()
	return Address{binary.BigEndian.Uint64(bytes[:]), binary.BigEndian.Uint64(bytes[8:])}
}

// Addr returns the address; an IPv4 address in its own form.
func (a Address) Addr() netip.Addr {
	var bytes [16]byte
	binary.BigEndian.PutUint64(bytes[:], a.High)
	binary.BigEndian.PutUint64(bytes[8:], a.Low)
	return netip.AddrFrom16(bytes).Unmap()
}

// Flags are the control bits of a TCP header.
type Flags uint8

// The control bits.
const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Has says whether any bit of mask is set.
func (f Flags) Has(mask Flags) bool { return f&mask != 0 }

// Segment is what a TCP segment's headers say.
type Segment struct {
	Source, Destination         Address
	SourcePort, DestinationPort uint16
	Seq, Ack                    uint32
	Window                      uint16 // as it stands in the header, unscaled
	Flags                       Flags
	// Payload is the number of bytes of data that the segment had on the wire,
	// whether the capture kept them or not.
	Payload uint32
	// Start is what its data begins with; see StartOf.
	Start uint64
	// BeyondFrame says that the IP header claims more bytes than the frame had.
	// Payload is then what it claims.
	BeyondFrame bool
}

// Kind is what a packet turned out to be.
type Kind uint8

// The kinds of packets.
const (
	TCP             Kind = iota // a TCP segment, decoded
	NotIP                       // ARP, LLDP, …
	NotTCP                      // another protocol over IP
	Fragment                    // a part of a fragmented IP packet
	Cut                         // the capture kept too little of the headers
	Malformed                   // headers that contradict themselves, or a packet that ends in them
	UnsupportedLink             // a link-layer type that Decode does not know
	GRE                         // tunnels, into which Decode does not look
	VXLAN
	Geneve
	GTP        // GTP-U, of mobile networks
	IPinIP     // IPv4 or IPv6 in either
	Pseudowire // what an MPLS label stack carries, unless that is IP
	Kinds      // the number of kinds
)

// Link-layer types that Decode knows, as in https://www.tcpdump.org/linktypes.html.
const (
	linkNull        = 0   // BSD loopback: the protocol family in the host's byte order
	linkEthernet    = 1   // Ethernet II
	linkRawBSD      = 12  // raw IP, under the value that most systems' DLT_RAW has
	linkRawOpenBSD  = 14  // raw IP, under the value that OpenBSD's DLT_RAW has
	linkRaw         = 101 // raw IP
	linkLoop        = 108 // OpenBSD loopback: the family in network byte order
	linkLinuxCooked = 113 // Linux "any" device, version 1
	linkIPv4        = 228 // raw IPv4
	linkIPv6        = 229 // raw IPv6
	linkNetlink     = 253 // messages between programs and the Linux kernel; never IP
	linkCooked2     = 276 // Linux "any" device, version 2
)
