package packet

import "encoding/binary"

// IP protocol numbers.
const (
	protocolHopByHop    = 0
	protocolTCP         = 6
	protocolRouting     = 43
	protocolFragment    = 44
	protocolAuth        = 51
	protocolDestination = 60
	protocolMobility    = 135
	protocolHIP         = 139
	protocolShim6       = 140
)

const (
	ipv4Bytes             = 20
	ipv6Bytes             = 40
	ipv6ExtensionBytesMin = 8
	tcpBytes              = 20
	tcpBytesNeeded        = 16 // where the fields of Segment end
)

// decodeIPv4 decodes from an IPv4 header on (RFC 791).
func decodeIPv4(data []byte, wireLen uint32, seg *Segment) Kind {
	if len(data) < ipv4Bytes {
		return Cut
	}
	headerLen := uint32(data[0]&0x0f) * 4
	if data[0]>>4 != 4 || headerLen < ipv4Bytes {
		return Malformed
	}
	total := uint32(binary.BigEndian.Uint16(data[2:]))
	if total == 0 {
		// Segmentation offload: the card cuts the packet up and fills this in.
		total = wireLen
	}
	if total < headerLen {
		return Malformed
	}
	if binary.BigEndian.Uint16(data[6:])&0x3fff != 0 { // more fragments, or an offset
		return Fragment
	}
	if data[9] != protocolTCP {
		return kindOf(data[9], data[min(headerLen, uint32(len(data))):])
	}
	if uint32(len(data)) < headerLen {
		return Cut
	}
	seg.BeyondFrame = total > wireLen
	seg.Source = Address{Low: mappedPrefix | uint64(binary.BigEndian.Uint32(data[12:]))}
	seg.Destination = Address{Low: mappedPrefix | uint64(binary.BigEndian.Uint32(data[16:]))}
	return decodeTCP(data[headerLen:], total-headerLen, seg)
}

// decodeIPv6 decodes from an IPv6 header on (RFC 8200).
func decodeIPv6(data []byte, wireLen uint32, seg *Segment) Kind {
	if len(data) < ipv6Bytes {
		return Cut
	}
	if data[0]>>4 != 6 {
		return Malformed
	}
	length := uint32(binary.BigEndian.Uint16(data[4:]))
	if length == 0 {
		// A jumbogram (RFC 2675), as Linux makes them with BIG TCP, or segmentation
		// offload.
		length = after(wireLen, ipv6Bytes)
	}
	seg.BeyondFrame = length > after(wireLen, ipv6Bytes)
	seg.Source = Address{binary.BigEndian.Uint64(data[8:]), binary.BigEndian.Uint64(data[16:])}
	seg.Destination = Address{binary.BigEndian.Uint64(data[24:]), binary.BigEndian.Uint64(data[32:])}
	protocol := data[6]
	data = data[ipv6Bytes:]
	for protocol != protocolTCP {
		if !isExtension(protocol) {
			return kindOf(protocol, data)
		}
		if len(data) < ipv6ExtensionBytesMin {
			return Cut
		}
		headerLen := (uint32(data[1]) + 1) * 8
		switch protocol {
		case protocolFragment:
			if binary.BigEndian.Uint16(data[2:])&0xfff9 != 0 { // an offset, or more fragments
				return Fragment
			}
			headerLen = 8 // the second byte is reserved
		case protocolAuth:
			headerLen = (uint32(data[1]) + 2) * 4
		}
		if length < headerLen {
			return Malformed
		}
		protocol = data[0]
		length -= headerLen
		if uint32(len(data)) < headerLen {
			return Cut
		}
		data = data[headerLen:]
	}
	return decodeTCP(data, length, seg)
}

// isExtension says whether a protocol number stands for an IPv6 extension
// header with a length, so that what follows it can be found.
func isExtension(protocol byte) bool {
	switch protocol {
	case protocolHopByHop, protocolRouting, protocolFragment, protocolAuth,
		protocolDestination, protocolMobility, protocolHIP, protocolShim6:
		return true
	}
	return false
}

// decodeTCP decodes from a TCP header on (RFC 9293); length is what the IP
// packet has for header and data.
func decodeTCP(data []byte, length uint32, seg *Segment) Kind {
	if length < tcpBytes {
		return Malformed
	}
	if len(data) < tcpBytesNeeded {
		return Cut
	}
	headerLen := uint32(data[12]>>4) * 4
	if headerLen < tcpBytes || headerLen > length {
		return Malformed
	}
	seg.SourcePort = binary.BigEndian.Uint16(data)
	seg.DestinationPort = binary.BigEndian.Uint16(data[2:])
	seg.Seq = binary.BigEndian.Uint32(data[4:])
	seg.Ack = binary.BigEndian.Uint32(data[8:])
	seg.Flags = Flags(data[13])
	seg.Window = binary.BigEndian.Uint16(data[14:])
	seg.Payload = length - headerLen
	seg.Start = 0
	if begin, end := uint64(headerLen), uint64(headerLen)+uint64(seg.Payload); begin < uint64(len(data)) {
		seg.Start = StartOf(data[begin:min(end, uint64(len(data)))]) // without what the wire pads to
	}
	return TCP
}

// startBytes is how much StartOf takes, and startBytesMin without how much it takes nothing.
const (
	startBytes    = 6
	startBytesMin = 5
)

// StartOf returns the first six bytes of a segment's data as a number, the first byte highest: as much as tells the
// kind of a record of TLS. It is 0 if the capture kept less than five of them; a sixth that it did not keep is 0.
func StartOf(data []byte) (start uint64) {
	if len(data) < startBytesMin {
		return 0
	}
	start = uint64(binary.BigEndian.Uint32(data))<<16 | uint64(data[4])<<8
	if len(data) >= startBytes {
		start |= uint64(data[5])
	}
	return start
}
