package packet

import "encoding/binary"

// Ethertypes.
const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherVLAN = 0x8100 // IEEE 802.1Q
	etherQinQ = 0x88a8 // IEEE 802.1ad
	etherOld  = 0x9100 // double tags before 802.1ad
)

const (
	ethernetBytes = 14
	cookedBytes   = 16
	cooked2Bytes  = 20
	vlanBytes     = 4
	familyBytes   = 4
)

// Decode finds the TCP segment in a packet of a link-layer type: data is what
// was captured, wireLen the length on the wire. Only for the kind TCP is all of
// seg filled in.
func Decode(linkType uint32, data []byte, wireLen uint32, seg *Segment) Kind {
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
	switch etherType {
	case etherIPv4:
		return decodeIPv4(data[skip:], after(wireLen, skip), seg)
	case etherIPv6:
		return decodeIPv6(data[skip:], after(wireLen, skip), seg)
	}
	return NotIP
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
