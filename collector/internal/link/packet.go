package link

import (
	"encoding/binary"
	"net/netip"
)

// A packet is what a gate must know of an IPv4 packet.
type packet struct {
	bytes         int
	tcp           bool
	from, to      netip.AddrPort
	seq, ackSeq   uint32
	syn, ack, rst bool
	data          int
}

const (
	ipHeaderBytes  = 20
	tcpHeaderBytes = 20
	protocolTCP    = 6
)

// parsePacket reads the headers of a packet of this kernel's own; what they do not say stays empty.
func parsePacket(raw []byte) packet {
	p := packet{bytes: len(raw)}
	if len(raw) < ipHeaderBytes || raw[0]>>4 != 4 {
		return p
	}
	source, _ := netip.AddrFromSlice(raw[12:16])
	destination, _ := netip.AddrFromSlice(raw[16:20])
	p.from, p.to = netip.AddrPortFrom(source, 0), netip.AddrPortFrom(destination, 0)
	header := int(raw[0]&0xf) * 4
	isFragment := binary.BigEndian.Uint16(raw[6:])&0x1fff != 0
	if raw[9] != protocolTCP || isFragment || len(raw) < header+tcpHeaderBytes {
		return p
	}
	segment := raw[header:]
	p.tcp = true
	p.from = netip.AddrPortFrom(source, binary.BigEndian.Uint16(segment))
	p.to = netip.AddrPortFrom(destination, binary.BigEndian.Uint16(segment[2:]))
	p.seq, p.ackSeq = binary.BigEndian.Uint32(segment[4:]), binary.BigEndian.Uint32(segment[8:])
	flags := segment[13]
	p.syn, p.rst, p.ack = flags&2 != 0, flags&4 != 0, flags&16 != 0
	p.data = max(0, len(segment)-int(segment[12]>>4)*4)
	return p
}

// resetFor gives the RST that a middlebox sends to a packet's sender in the name of its receiver.
func resetFor(p packet) []byte {
	raw := make([]byte, ipHeaderBytes+tcpHeaderBytes)
	raw[0], raw[8], raw[9] = 0x45, 64, protocolTCP
	binary.BigEndian.PutUint16(raw[2:], uint16(len(raw)))
	from, to := p.to.Addr().As4(), p.from.Addr().As4()
	copy(raw[12:], from[:])
	copy(raw[16:], to[:])
	segment := raw[ipHeaderBytes:]
	binary.BigEndian.PutUint16(segment, p.to.Port())
	binary.BigEndian.PutUint16(segment[2:], p.from.Port())
	binary.BigEndian.PutUint32(segment[4:], p.ackSeq)
	segment[12], segment[13] = 5<<4, 4
	// The pseudo header has the addresses, the protocol and the length; the kernel makes the checksum of the header.
	sum := uint32(protocolTCP + tcpHeaderBytes)
	for _, part := range [][]byte{raw[12:20], segment} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(segment[16:], ^uint16(sum))
	return raw
}
