package packet

import (
	"bytes"
	"encoding/binary"
)

// Ethertypes.
const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherVLAN = 0x8100 // IEEE 802.1Q
	etherQinQ = 0x88a8 // IEEE 802.1ad
	etherOld  = 0x9100 // double tags before 802.1ad

	etherMPLS          = 0x8847
	etherMPLSMulticast = 0x8848
	etherPPPoE         = 0x8864 // a session's packets

	// lengthMax is the largest value that is not a type but the length of an LLC frame.
	lengthMax = 1500
)

// PPP protocol numbers.
const (
	pppIPv4 = 0x0021
	pppIPv6 = 0x0057
)

const (
	ethernetBytes = 14
	cookedBytes   = 16
	cooked2Bytes  = 20
	vlanBytes     = 4
	familyBytes   = 4
	labelBytes    = 4 // of MPLS
	pppoeBytes    = 8 // with the number of the PPP protocol
	snapBytes     = 8 // LLC and SNAP
)

// Decode finds the TCP segment in a packet of a link-layer type: data is what
// was captured, wireLen the length on the wire. Only for the kind TCP is all of
// seg filled in.
func Decode(linkType uint32, data []byte, wireLen uint32, seg *Segment) Kind {
	kind := decodeLink(linkType, data, wireLen, seg)
	if kind == Cut && uint32(len(data)) >= wireLen {
		return Malformed // the capture kept all: the packet itself ends there
	}
	return kind
}

func decodeLink(linkType uint32, data []byte, wireLen uint32, seg *Segment) Kind {
	var etherType uint16
	var skip int
	switch linkType {
	case linkEthernet:
		if len(data) < ethernetBytes {
			return Cut
		}
		etherType, skip = binary.BigEndian.Uint16(data[12:]), ethernetBytes
	case linkLinuxCooked:
		if len(data) < cookedBytes {
			return Cut
		}
		etherType, skip = binary.BigEndian.Uint16(data[14:]), cookedBytes
	case linkCooked2:
		if len(data) < cooked2Bytes {
			return Cut
		}
		etherType, skip = binary.BigEndian.Uint16(data), cooked2Bytes
	case linkNull, linkLoop:
		// The version in the IP header says the same as the family, whose number
		// for IPv6 differs between systems.
		return decodeRaw(data, wireLen, familyBytes, seg)
	case linkRaw, linkRawBSD, linkRawOpenBSD, linkIPv4, linkIPv6:
		return decodeRaw(data, wireLen, 0, seg)
	case linkNetlink:
		return NotIP
	default:
		return UnsupportedLink
	}
	for etherType == etherVLAN || etherType == etherQinQ || etherType == etherOld {
		if len(data) < skip+vlanBytes {
			return Cut
		}
		etherType = binary.BigEndian.Uint16(data[skip+2:])
		skip += vlanBytes
	}
	if etherType <= lengthMax {
		switch {
		case len(data) < skip+snapBytes:
			return shortLLC(data[skip:])
		case !isSNAP(data[skip:]):
			return NotIP
		}
		etherType = binary.BigEndian.Uint16(data[skip+6:])
		skip += snapBytes
	}
	switch etherType {
	case etherIPv4:
		return decodeIPv4(data[skip:], after(wireLen, skip), seg)
	case etherIPv6:
		return decodeIPv6(data[skip:], after(wireLen, skip), seg)
	case etherMPLS, etherMPLSMulticast:
		return decodeMPLS(data, wireLen, skip, seg)
	case etherPPPoE:
		return decodePPPoE(data, wireLen, skip, seg)
	}
	return NotIP
}

// snap is how an LLC frame begins that names a type as Ethernet does: LLC's
// addresses and control byte, and the organisation that numbers the types.
var snap = [snapBytes - 2]byte{0xaa, 0xaa, 0x03, 0, 0, 0}

func isSNAP(data []byte) bool { return [len(snap)]byte(data) == snap }

// shortLLC is the kind of an LLC frame of less than snapBytes.
func shortLLC(data []byte) Kind {
	if bytes.HasPrefix(snap[:], data[:min(len(data), len(snap))]) {
		return Cut
	}
	return NotIP
}

// decodeMPLS decodes what an MPLS label stack at skip carries. Nothing there says
// what that is; IP is known by its version (RFC 3032, RFC 4928).
func decodeMPLS(data []byte, wireLen uint32, skip int, seg *Segment) Kind {
	for isBottom := false; !isBottom; skip += labelBytes {
		if len(data) < skip+labelBytes {
			return Cut
		}
		isBottom = data[skip+2]&1 != 0
	}
	kind := decodeRaw(data, wireLen, skip, seg)
	if kind == NotIP {
		return Pseudowire
	}
	return kind
}

// decodePPPoE decodes a packet of a PPPoE session (RFC 2516) at skip.
func decodePPPoE(data []byte, wireLen uint32, skip int, seg *Segment) Kind {
	if len(data) < skip+pppoeBytes {
		return Cut
	}
	switch binary.BigEndian.Uint16(data[skip+6:]) {
	case pppIPv4, pppIPv6:
		return decodeRaw(data, wireLen, skip+pppoeBytes, seg)
	}
	return NotIP // how the session is agreed on
}

// decodeRaw decodes IP after skip bytes by the version in its header.
func decodeRaw(data []byte, wireLen uint32, skip int, seg *Segment) Kind {
	if len(data) <= skip {
		return Cut
	}
	switch data[skip] >> 4 {
	case 4:
		return decodeIPv4(data[skip:], after(wireLen, skip), seg)
	case 6:
		return decodeIPv6(data[skip:], after(wireLen, skip), seg)
	}
	return NotIP
}

// after returns what is left of a length on the wire.
func after(wireLen uint32, skip int) uint32 {
	return wireLen - min(wireLen, uint32(skip))
}
