package packet

import "encoding/binary"

// IP protocol numbers of tunnels, and of what carries others.
const (
	protocolIPv4   = 4
	protocolUDP    = 17
	protocolIPv6   = 41
	protocolGRE    = 47
	protocolMPLS   = 137 // MPLS in IP (RFC 4023)
	udpHeaderBytes = 8
)

// Ports that UDP tunnels are sent to.
const (
	portGTP        = 2152
	portVXLAN      = 4789
	portGeneve     = 6081
	portVXLANLinux = 8472 // Linux's before the number was assigned, and its default
)

// kindOf returns the kind of an IP packet that is not TCP; data is what the
// capture kept behind the IP header. Decode does not look into tunnels over IP:
// their addresses may be those of another network, and a capture often has the
// same packets beside them, as they entered the tunnel or left it.
func kindOf(protocol byte, data []byte) Kind {
	switch protocol {
	case protocolIPv4, protocolIPv6:
		return IPinIP
	case protocolGRE:
		return GRE
	case protocolMPLS:
		return Pseudowire
	case protocolUDP:
		return kindOfUDP(data)
	}
	return NotTCP
}

// kindOfUDP distinguishes a tunnel from other UDP by its port, and by its
// header if the capture has that.
func kindOfUDP(data []byte) Kind {
	if len(data) < 4 {
		return NotTCP
	}
	header := data[min(len(data), udpHeaderBytes):]
	has := func(mask, value byte) bool { return len(header) == 0 || header[0]&mask == value }
	switch binary.BigEndian.Uint16(data[2:]) {
	case portVXLAN, portVXLANLinux:
		if has(0x08, 0x08) { // it has a network's number (RFC 7348)
			return VXLAN
		}
	case portGeneve:
		if has(0xc0, 0) { // version 0 (RFC 8926)
			return Geneve
		}
	case portGTP:
		isData := len(header) < 2 || header[1] == 0xff // else echoes and errors
		if has(0xf0, 0x30) && isData {                 // version 1, GTP and not GTP'
			return GTP
		}
	}
	return NotTCP
}
