package packet_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"connlab/collector/internal/flowtest"
	"connlab/collector/internal/packet"
)

var (
	ipv4 = flowtest.Segment{
		From: netip.MustParseAddrPort("10.0.0.1:40000"), To: netip.MustParseAddrPort("192.168.255.254:8080"),
		Seq: 0xfffffffe, Ack: 0x80000001, Flags: packet.PSH | packet.ACK, Window: 502, Payload: 300,
	}
	ipv6 = flowtest.Segment{
		From: netip.MustParseAddrPort("[fd00::1]:65535"), To: netip.MustParseAddrPort("[2001:db8:1:2:3:4:5:6]:80"),
		Seq: 1, Ack: 0, Flags: packet.SYN, Window: 64240, Payload: 0,
	}
)

// headers returns the bytes before the data.
func headers(s *flowtest.Segment, frame []byte) int { return len(frame) - s.Payload }

func address(a netip.Addr) packet.Address {
	bytes := a.As16()
	return packet.Address{High: binary.BigEndian.Uint64(bytes[:8]), Low: binary.BigEndian.Uint64(bytes[8:])}
}

func mustBe(t *testing.T, what string, got packet.Segment, s *flowtest.Segment) {
	t.Helper()
	want := packet.Segment{
		Source: address(s.From.Addr()), Destination: address(s.To.Addr()), SourcePort: s.From.Port(), DestinationPort: s.To.Port(),
		Seq: s.Seq, Ack: s.Ack, Flags: s.Flags, Window: s.Window, Payload: uint32(s.Payload),
	}
	got.Start = 0 // it depends on how much the capture kept
	if got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func TestTheStartOfTheDataIsWhatTheCaptureKeptOfIt(t *testing.T) {
	for _, link := range flowtest.Links {
		for _, c := range []struct {
			payload, cut int
			want         uint64
		}{
			{0, 0, 0}, {4, 0, 0}, {5, 0, 0x616263646500}, {6, 0, 0x616263646566}, {300, 0, 0x616263646566},
			{300, 294, 0x616263646566}, {300, 295, 0x616263646500}, {300, 296, 0}, {300, 300, 0},
		} {
			s := ipv4
			s.Payload = c.payload
			frame := s.Frame(link)
			var seg packet.Segment
			if kind := packet.Decode(link.Type, frame[:len(frame)-c.cut], uint32(len(frame)), &seg); kind != packet.TCP {
				t.Fatalf("%s: kind %d", link.Name, kind)
			}
			if seg.Start != c.want {
				t.Errorf("%s, %d bytes less %d: %x, want %x", link.Name, c.payload, c.cut, seg.Start, c.want)
			}
		}
	}
}

func TestEveryLinkGivesTheSegment(t *testing.T) {
	for _, link := range flowtest.Links {
		for _, s := range []*flowtest.Segment{&ipv4, &ipv6} {
			frame := s.Frame(link)
			var seg packet.Segment
			if kind := packet.Decode(link.Type, frame, uint32(len(frame)), &seg); kind != packet.TCP {
				t.Errorf("%s: kind %d", link.Name, kind)
				continue
			}
			mustBe(t, link.Name, seg, s)
		}
	}
}

func TestHeadersAloneAreEnoughAndLessIsCut(t *testing.T) {
	for _, link := range flowtest.Links {
		for _, s := range []*flowtest.Segment{&ipv4, &ipv6} {
			frame := s.Frame(link)
			for length := range frame {
				var seg packet.Segment
				switch kind := packet.Decode(link.Type, frame[:length:length], uint32(len(frame)), &seg); kind {
				case packet.TCP:
					mustBe(t, link.Name, seg, s)
				case packet.Cut:
					if length >= headers(s, frame) {
						t.Errorf("%s: %d of %d bytes are cut", link.Name, length, len(frame))
					}
				default:
					t.Errorf("%s: %d of %d bytes: kind %d", link.Name, length, len(frame), kind)
				}
			}
		}
	}
}

func TestExtensionHeadersArePassedOver(t *testing.T) {
	options := make([]byte, 7) // with the first byte, 8
	long := append([]byte{1}, make([]byte, 14)...)
	auth := append([]byte{4}, make([]byte, 22)...) // counted in words of 4 bytes, less 2
	atom := []byte{0xff, 0, 0, 1, 2, 3, 4}         // the second byte is reserved
	first := []byte{0, 0, 1, 1, 2, 3, 4}           // more fragments follow
	for _, c := range []struct {
		name       string
		extensions []flowtest.Extension
		kind       packet.Kind
	}{
		{"hop by hop", []flowtest.Extension{{Protocol: 0, Rest: options}}, packet.TCP},
		{"three", []flowtest.Extension{{Protocol: 0, Rest: options}, {Protocol: 43, Rest: long}, {Protocol: 60, Rest: options}}, packet.TCP},
		{"authentication", []flowtest.Extension{{Protocol: 51, Rest: auth}}, packet.TCP},
		{"a fragment header of a whole packet", []flowtest.Extension{{Protocol: 44, Rest: atom}}, packet.TCP},
		{"a fragment", []flowtest.Extension{{Protocol: 44, Rest: first}}, packet.Fragment},
		{"no next header", []flowtest.Extension{{Protocol: 59, Rest: options}}, packet.NotTCP},
	} {
		s := ipv6
		s.Payload = 10
		frame := s.Frame(flowtest.Ethernet, c.extensions...)
		var seg packet.Segment
		kind := packet.Decode(1, frame, uint32(len(frame)), &seg)
		if kind != c.kind {
			t.Errorf("%s: kind %d, want %d", c.name, kind, c.kind)
		} else if kind == packet.TCP {
			mustBe(t, c.name, seg, &s)
		}
	}
}

func TestWhatIsNoSegmentIsSaidSo(t *testing.T) {
	change := func(s *flowtest.Segment, at int, to ...byte) []byte {
		frame := s.Frame(flowtest.Ethernet)
		copy(frame[at:], to)
		return frame
	}
	for _, c := range []struct {
		name  string
		frame []byte
		kind  packet.Kind
	}{
		{"ARP", change(&ipv4, 12, 0x08, 0x06), packet.NotIP},
		{"UDP", change(&ipv4, 14+9, 17), packet.NotTCP},
		{"a first fragment", change(&ipv4, 14+6, 0x20), packet.Fragment},
		{"a later fragment", change(&ipv4, 14+6, 0x00, 0x10), packet.Fragment},
		{"version 5", change(&ipv4, 14, 0x55), packet.Malformed},
		{"an IP header of 16 bytes", change(&ipv4, 14, 0x44), packet.Malformed},
		{"a TCP header of 16 bytes", change(&ipv4, 14+20+12, 0x40), packet.Malformed},
		{"a TCP header longer than the packet", change(&ipv6, 14+40+12, 0xf0), packet.Malformed},
		{"a packet shorter than its header", change(&ipv4, 14+2, 0, 19), packet.Malformed},
		{"IPv6 of version 4", change(&ipv6, 14, 0x40), packet.Malformed},
	} {
		var seg packet.Segment
		if kind := packet.Decode(1, c.frame, uint32(len(c.frame)), &seg); kind != c.kind {
			t.Errorf("%s: kind %d, want %d", c.name, kind, c.kind)
		}
	}
	var seg packet.Segment
	netlink := []byte{0, 4, 3, 56, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x45, 0, 0, 0}
	if kind := packet.Decode(253, netlink, uint32(len(netlink)), &seg); kind != packet.NotIP {
		t.Errorf("netlink: kind %d", kind)
	}
	if kind := packet.Decode(105, ipv4.Frame(flowtest.Ethernet), 100, &seg); kind != packet.UnsupportedLink {
		t.Errorf("wireless: kind %d", kind)
	}
}

// outer puts a payload into an IPv4 packet of a protocol.
func outer(protocol byte, payload ...byte) []byte {
	frame := ipv4.Frame(flowtest.Ethernet)[:14+20]
	frame[14+9] = protocol
	binary.BigEndian.PutUint16(frame[14+2:], uint16(20+len(payload)))
	return append(frame, payload...)
}

// udp is a datagram for a port.
func udp(port uint16, payload ...byte) []byte {
	header := binary.BigEndian.AppendUint16([]byte{0xd0, 0x00}, port)
	return append(binary.BigEndian.AppendUint16(header, uint16(8+len(payload))), append([]byte{0, 0}, payload...)...)
}

func TestTunnelsAreNamed(t *testing.T) {
	inner := ipv4.Frame(flowtest.Ethernet)
	mpls := func(payload ...byte) []byte {
		return append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0x47, 0, 1, 1, 64}, payload...)
	}
	fourInSix := ipv6.Frame(flowtest.Ethernet)
	fourInSix[14+6] = 4
	options := flowtest.Extension{Protocol: 60, Rest: make([]byte, 7)}
	behindOptions := ipv6.Frame(flowtest.Ethernet, options)
	behindOptions[14+40] = 41
	for _, c := range []struct {
		name  string
		frame []byte
		kind  packet.Kind
	}{
		{"GRE", outer(47, append([]byte{0, 0, 0x65, 0x58}, inner...)...), packet.GRE},
		{"VXLAN", outer(17, udp(4789, append([]byte{8, 0, 0, 0, 0, 0, 7, 0}, inner...)...)...), packet.VXLAN},
		{"VXLAN at Linux's first port", outer(17, udp(8472, append([]byte{8, 0, 0, 0, 0, 0, 7, 0}, inner...)...)...), packet.VXLAN},
		{"VXLAN without its header", outer(17, udp(4789)...), packet.VXLAN},
		{"other UDP at VXLAN's port", outer(17, udp(4789, 0, 0, 0, 0)...), packet.NotTCP},
		{"Geneve", outer(17, udp(6081, append([]byte{0, 0, 0x65, 0x58, 0, 0, 7, 0}, inner...)...)...), packet.Geneve},
		{"Geneve of version 1", outer(17, udp(6081, 0x40, 0, 0x65, 0x58)...), packet.NotTCP},
		{"GTP", outer(17, udp(2152, append([]byte{0x30, 0xff, 0, 20, 0, 0, 0, 1}, inner[14:]...)...)...), packet.GTP},
		{"an echo of GTP", outer(17, udp(2152, 0x32, 1, 0, 4)...), packet.NotTCP},
		{"4in4", outer(4, inner[14:]...), packet.IPinIP},
		{"6in4", outer(41, ipv6.Frame(flowtest.Ethernet)[14:]...), packet.IPinIP},
		{"4in6", fourInSix, packet.IPinIP},
		{"6in6 behind options", behindOptions, packet.IPinIP},
		{"MPLS in IP", outer(137, 0, 1, 1, 64), packet.Pseudowire},
		{"Ethernet in MPLS", mpls(append([]byte{0, 0, 0, 0}, inner...)...), packet.Pseudowire},
		{"PPPoE that agrees on a session", append(mpls()[:12], 0x88, 0x64, 0x11, 0, 0, 7, 0, 4, 0xc0, 0x21, 1, 1), packet.NotIP},
		{"LLC without SNAP", append(mpls()[:12], 0, 38, 0x42, 0x42, 3, 0, 0, 0, 0, 0), packet.NotIP},
		{"DNS", outer(17, udp(53, 0, 0, 1, 0)...), packet.NotTCP},
		{"ICMP", outer(1, 8, 0, 0, 0), packet.NotTCP},
	} {
		var seg packet.Segment
		if kind := packet.Decode(1, c.frame, uint32(len(c.frame)), &seg); kind != c.kind {
			t.Errorf("%s: kind %d, want %d", c.name, kind, c.kind)
		}
	}
}

func TestAPacketThatEndsInItsHeadersWasNotCut(t *testing.T) {
	for _, link := range flowtest.Links {
		for _, s := range []*flowtest.Segment{&ipv4, &ipv6} {
			frame := s.Frame(link)
			for length := range headers(s, frame) - 24 {
				var seg packet.Segment
				if kind := packet.Decode(link.Type, frame[:length], uint32(length), &seg); kind != packet.Malformed {
					t.Errorf("%s: %d of %d bytes: kind %d", link.Name, length, len(frame), kind)
				}
			}
		}
	}
}

func TestAPacketThatClaimsMoreThanItsFrameIsMarked(t *testing.T) {
	for _, s := range []*flowtest.Segment{&ipv4, &ipv6} {
		frame := s.Frame(flowtest.Ethernet)
		for short := range 3 {
			var seg packet.Segment
			if kind := packet.Decode(1, frame, uint32(len(frame)-short), &seg); kind != packet.TCP || seg.BeyondFrame != (short > 0) {
				t.Errorf("%d bytes short: kind %d, %v", short, kind, seg.BeyondFrame)
			}
		}
	}
}

func TestAnOffloadedPacketHasTheWiresLength(t *testing.T) {
	for _, s := range []flowtest.Segment{ipv4, ipv6} {
		s.Payload = 100_000
		frame := s.Frame(flowtest.Ethernet)
		at := 14 + 2
		if s.From.Addr().Is6() {
			at = 14 + 4
		}
		frame[at], frame[at+1] = 0, 0
		var seg packet.Segment
		if kind := packet.Decode(1, frame[:128], uint32(len(frame)), &seg); kind != packet.TCP {
			t.Fatalf("kind %d", kind)
		}
		mustBe(t, "offloaded", seg, &s)
	}
}

func TestGopacketDecodesTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		frame := ipv4.Frame(flowtest.Ethernet)
		if random.IntN(2) == 0 {
			frame = ipv6.Frame(flowtest.Ethernet)
		}
		for range random.IntN(3) {
			frame[14+random.IntN(60)] = byte(random.Uint32())
		}
		var seg packet.Segment
		kind := packet.Decode(1, frame, uint32(len(frame)), &seg)
		p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
		tcp, isTCP := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if kind != packet.TCP || !isTCP || p.ErrorLayer() != nil {
			continue // what is wrong with a packet, each finds in its own order
		}
		if seg.Seq != tcp.Seq || seg.Ack != tcp.Ack || seg.SourcePort != uint16(tcp.SrcPort) || seg.DestinationPort != uint16(tcp.DstPort) ||
			seg.Window != tcp.Window || seg.Flags.Has(packet.SYN) != tcp.SYN || seg.Flags.Has(packet.FIN) != tcp.FIN ||
			seg.Flags.Has(packet.RST) != tcp.RST || seg.Flags.Has(packet.ACK) != tcp.ACK {
			t.Fatalf("% x: %+v, gopacket has %+v", frame[:80], seg, tcp)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, link := range flowtest.Links {
		f.Add(link.Type, ipv4.Frame(link), uint32(400))
		f.Add(link.Type, ipv6.Frame(link), uint32(0))
	}
	f.Fuzz(func(t *testing.T, link uint32, data []byte, wireLen uint32) {
		var seg packet.Segment
		kind := packet.Decode(link, data, wireLen, &seg)
		if kind >= packet.Kinds {
			t.Errorf("kind %d", kind)
		}
	})
}
