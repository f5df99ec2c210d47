package flowtest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// Format is a capture file format.
type Format struct {
	Name  string
	NG    bool                   // pcapng, else pcap
	Order binary.AppendByteOrder // of the file
	Nano  bool                   // times in nanoseconds, else in microseconds
}

// Formats are all formats.
var Formats = []Format{
	{"PcapMicroLittle", false, binary.LittleEndian, false},
	{"PcapMicroBig", false, binary.BigEndian, false},
	{"PcapNanoLittle", false, binary.LittleEndian, true},
	{"PcapNanoBig", false, binary.BigEndian, true},
	{"PcapngMicroLittle", true, binary.LittleEndian, false},
	{"PcapngMicroBig", true, binary.BigEndian, false},
	{"PcapngNanoLittle", true, binary.LittleEndian, true},
	{"PcapngNanoBig", true, binary.BigEndian, true},
}

// Pcap is the plainest format.
var Pcap = Formats[0]

// Packet is a packet to be captured.
type Packet struct {
	TimeNs    int64
	Interface int // pcapng only
	Data      []byte
}

// Packets puts segments into packets of a link.
func Packets(link Link, segments []Segment) []Packet {
	packets := make([]Packet, len(segments))
	for i := range segments {
		packets[i] = Packet{TimeNs: segments[i].TimeNs, Data: segments[i].Frame(link)}
	}
	return packets
}

// Capture returns a capture of packets. Each keeps at most snaplen bytes; all
// interfaces have the link type.
func Capture(f Format, linkType uint32, snaplen int, packets []Packet) []byte {
	if f.NG {
		return captureNG(f, linkType, snaplen, packets)
	}
	magic := uint32(0xa1b2c3d4)
	if f.Nano {
		magic = 0xa1b23c4d
	}
	var file []byte
	file = f.uint32s(file, magic)
	file = f.Order.AppendUint16(file, 2)
	file = f.Order.AppendUint16(file, 4)
	file = f.uint32s(file, 0, 0, uint32(snaplen), linkType)
	for _, p := range packets {
		kept := p.Data[:min(len(p.Data), snaplen)]
		fraction := uint32(p.TimeNs % 1e9)
		if !f.Nano {
			fraction /= 1000
		}
		file = f.uint32s(file, uint32(p.TimeNs/1e9), fraction, uint32(len(kept)), uint32(len(p.Data)))
		file = append(file, kept...)
	}
	return file
}

// Snoop returns a capture of Ethernet packets in the snoop format.
func Snoop(snaplen int, packets []Packet) []byte {
	big := Format{Order: binary.BigEndian}
	file := big.uint32s([]byte("snoop\x00\x00\x00"), 2, 4)
	for _, p := range packets {
		kept := p.Data[:min(len(p.Data), snaplen)]
		padded := (len(kept) + 3) &^ 3
		file = big.uint32s(file, uint32(len(p.Data)), uint32(len(kept)), uint32(24+padded), 0)
		file = big.uint32s(file, uint32(p.TimeNs/1e9), uint32(p.TimeNs%1e9/1000))
		file = append(append(file, kept...), make([]byte, padded-len(kept))...)
	}
	return file
}

func captureNG(f Format, linkType uint32, snaplen int, packets []Packet) []byte {
	interfaces := 1
	for _, p := range packets {
		interfaces = max(interfaces, p.Interface+1)
	}
	section := f.uint32s(nil, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff) // version 1.0, length unknown
	file := f.Block(nil, 0x0a0d0d0a, section)
	for range interfaces {
		file = f.Block(file, 1, f.InterfaceBody(linkType, snaplen))
	}
	// A name resolution block, which a reader of packets has to skip.
	file = f.Block(file, 4, []byte{0, 0, 0, 0})
	for _, p := range packets {
		file = f.Block(file, 6, f.PacketBody(p, snaplen))
	}
	return file
}

// InterfaceBody is the body of an Interface Description Block.
func (f Format) InterfaceBody(linkType uint32, snaplen int) []byte {
	body := f.Order.AppendUint16(nil, uint16(linkType))
	body = f.Order.AppendUint16(body, 0)
	body = f.uint32s(body, uint32(snaplen))
	body = f.option(body, 2, []byte("eth0")) // if_name
	if f.Nano {
		body = f.option(body, 9, []byte{9}) // if_tsresol
	}
	return f.option(body, 0, nil)
}

// PacketBody is the body of an Enhanced Packet Block.
func (f Format) PacketBody(p Packet, snaplen int) []byte {
	ticks := uint64(p.TimeNs)
	if !f.Nano {
		ticks /= 1000
	}
	kept := p.Data[:min(len(p.Data), snaplen)]
	body := f.uint32s(nil, uint32(p.Interface), uint32(ticks>>32), uint32(ticks), uint32(len(kept)), uint32(len(p.Data)))
	return append(body, kept...)
}

// Block appends a pcapng block to file.
func (f Format) Block(file []byte, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	length := uint32(12 + len(body))
	file = f.uint32s(file, kind, length)
	file = append(file, body...)
	return f.uint32s(file, length)
}

func (f Format) option(body []byte, code uint16, value []byte) []byte {
	body = f.Order.AppendUint16(body, code)
	body = f.Order.AppendUint16(body, uint16(len(value)))
	body = append(body, value...)
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	return body
}

func (f Format) uint32s(to []byte, values ...uint32) []byte {
	for _, v := range values {
		to = f.Order.AppendUint32(to, v)
	}
	return to
}

// Save writes a capture into the test's own directory and returns its path.
func Save(t testing.TB, capture []byte) string {
	t.Helper()
	return SaveAs(t, filepath.Join(t.TempDir(), "capture"), capture)
}

// SaveAs writes a capture in place of the one that path has, if it has one, and
// returns path. A fuzz target is faster without a directory for each capture.
func SaveAs(t testing.TB, path string, capture []byte) string {
	t.Helper()
	if err := os.WriteFile(path, capture, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
