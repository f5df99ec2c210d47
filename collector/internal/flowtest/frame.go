package flowtest

import (
	"encoding/binary"
	"net/netip"

	"connlab/collector/internal/packet"
)

// Link is a link layer to put segments into.
type Link struct {
	Name string
	Type uint32 // LINKTYPE_ value
	wrap func(ip []byte, etherType uint16) []byte
}

// Links are all link layers, VLAN tags and what Ethernet else carries IP in among
// them.
var Links = []Link{
	{"Ethernet", 1, ethernet(nil)},
	{"VLAN", 1, ethernet([]uint16{0x8100})},
	{"QinQ", 1, ethernet([]uint16{0x88a8, 0x8100})},
	{"SNAP", 1, func(ip []byte, etherType uint16) []byte {
		llc := binary.BigEndian.AppendUint16([]byte{0xaa, 0xaa, 3, 0, 0, 0}, etherType)
		return ethernet(nil)(append(llc, ip...), uint16(min(len(llc)+len(ip), 1500)))
	}},
	{"MPLS", 1, func(ip []byte, _ uint16) []byte {
		return ethernet(nil)(append([]byte{0, 1, 0, 64, 0, 2, 1, 64}, ip...), 0x8847) // two labels
	}},
	{"PPPoE", 1, func(ip []byte, etherType uint16) []byte {
		session := binary.BigEndian.AppendUint16([]byte{0x11, 0, 0, 7}, uint16(len(ip)+2))
		if etherType == 0x0800 {
			session = append(session, 0, 0x21)
		} else {
			session = append(session, 0, 0x57)
		}
		return ethernet(nil)(append(session, ip...), 0x8864)
	}},
	{"LinuxCooked", 113, func(ip []byte, etherType uint16) []byte {
		return append(binary.BigEndian.AppendUint16([]byte{0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0}, etherType), ip...)
	}},
	{"LinuxCooked2", 276, func(ip []byte, etherType uint16) []byte {
		h := binary.BigEndian.AppendUint16(nil, etherType)
		return append(append(h, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0), ip...)
	}},
	{"Raw", 101, func(ip []byte, _ uint16) []byte { return ip }},
	{"Null", 0, func(ip []byte, etherType uint16) []byte {
		family := byte(2)
		if etherType == 0x86dd {
			family = 30
		}
		return append([]byte{family, 0, 0, 0}, ip...)
	}},
}

// Ethernet is the plainest link.
var Ethernet = Links[0]

func ethernet(tags []uint16) func([]byte, uint16) []byte {
	return func(ip []byte, etherType uint16) []byte {
		frame := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
		for vlan, tag := range tags {
			frame = binary.BigEndian.AppendUint16(frame, tag)
			frame = binary.BigEndian.AppendUint16(frame, uint16(100+vlan))
		}
		frame = append(binary.BigEndian.AppendUint16(frame, etherType), ip...)
		for len(frame) < 60 { // what the wire pads to
			frame = append(frame, 0)
		}
		return frame
	}
}

// Frame returns the segment as a packet of the link, with correct lengths and
// no checksums. Extensions are IPv6 extension headers, whole but for their
// first byte, which Frame fills in.
func (s *Segment) Frame(link Link, extensions ...Extension) []byte {
	tcp := s.tcp()
	if s.From.Addr().Is4() {
		return link.wrap(append(ipv4Header(s.From.Addr(), s.To.Addr(), len(tcp)), tcp...), 0x0800)
	}
	var chain []byte
	next := byte(6)
	for i := len(extensions) - 1; i >= 0; i-- {
		body := append([]byte{next}, extensions[i].Rest...)
		chain = append(body, chain...)
		next = extensions[i].Protocol
	}
	ip := []byte{0x60, 0, 0, 0}
	ip = binary.BigEndian.AppendUint16(ip, uint16(len(chain)+len(tcp)))
	ip = append(ip, next, 64)
	ip = append(append(ip, s.From.Addr().AsSlice()...), s.To.Addr().AsSlice()...)
	return link.wrap(append(append(ip, chain...), tcp...), 0x86dd)
}

// Extension is an IPv6 extension header.
type Extension struct {
	Protocol byte
	Rest     []byte // all but the first byte
}

func ipv4Header(from, to netip.Addr, length int) []byte {
	ip := []byte{0x45, 0}
	ip = binary.BigEndian.AppendUint16(ip, uint16(20+length))
	ip = append(ip, 0, 1, 0x40, 0, 64, 6, 0, 0)
	return append(append(ip, from.AsSlice()...), to.AsSlice()...)
}

// tcp returns header and data; a SYN has the options that Linux sends.
func (s *Segment) tcp() []byte {
	var options []byte
	if s.Flags.Has(packet.SYN) {
		options = []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7}
	} else {
		options = []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1}
	}
	h := binary.BigEndian.AppendUint16(nil, s.From.Port())
	h = binary.BigEndian.AppendUint16(h, s.To.Port())
	h = binary.BigEndian.AppendUint32(h, s.Seq)
	h = binary.BigEndian.AppendUint32(h, s.Ack)
	h = append(h, byte((20+len(options))/4)<<4, byte(s.Flags))
	h = binary.BigEndian.AppendUint16(h, s.Window)
	h = append(h, 0, 0, 0, 0)
	h = append(h, options...)
	for i := range s.Payload {
		if i < len(s.Start) {
			h = append(h, s.Start[i])
		} else {
			h = append(h, byte('a'+i%26))
		}
	}
	return h
}
