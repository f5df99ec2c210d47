package capture

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// savefile is a pcap file with one Ethernet packet of 128 captured bytes: 54 of headers, then data.
func savefile(etherType uint16) []byte {
	packet := bytes.Repeat([]byte("secret!!"), snapBytes/8)
	copy(packet, make([]byte, headersMin))
	binary.BigEndian.PutUint16(packet[12:], etherType)
	packet[14] = 0x45
	binary.BigEndian.PutUint16(packet[16:], 1040) // 1000 bytes of data
	packet[23] = 6
	packet[46] = 5 << 4
	order := binary.NativeEndian
	file := make([]byte, 0, fileHeaderBytes+packetHeaderBytes+snapBytes)
	for _, word := range []uint32{0xa1b23c4d, 4<<16 | 2, 0, 0, snapBytes, 1} {
		file = order.AppendUint32(file, word)
	}
	for _, word := range []uint32{1, 2, snapBytes, 1054} {
		file = order.AppendUint32(file, word)
	}
	return append(file, packet...)
}

func copied(t *testing.T, input []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.pcap")
	if err := copyHeaders(path, bytes.NewReader(input)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestNoDataOfAPacketIsKept(t *testing.T) {
	for name, etherType := range map[string]uint16{"TCP": 0x0800, "something else": 0x0806} {
		input := savefile(etherType)
		content := copied(t, append(input, input[fileHeaderBytes:]...))
		if bytes.Contains(content, []byte("secret")) {
			t.Errorf("%s: data was kept", name)
		}
		if want := fileHeaderBytes + 2*(packetHeaderBytes+headersMin); len(content) != want {
			t.Errorf("%s: %d bytes, want %d", name, len(content), want)
		}
		path := filepath.Join(t.TempDir(), "again.pcap")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if count, err := countPackets(path); err != nil || count != 2 {
			t.Errorf("%s: %d packets, %v", name, count, err)
		}
		if wire := binary.NativeEndian.Uint32(content[fileHeaderBytes+12:]); wire != 1054 {
			t.Errorf("%s: the length on the wire is %d", name, wire)
		}
	}
}

func TestOfTLSTheKindOfTheRecordIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		data string
		kept int
	}{
		"ClientHello": {"\x16\x03\x01\x03\xe3\x01secret!!", 6},
		"alert":       {"\x15\x03\x03\x00\x02\x02\x30secret!!", 7},
		"data":        {"\x17\x03\x03\x03\xe3secret!!", 5},
	} {
		input := savefile(0x0800)
		copy(input[fileHeaderBytes+packetHeaderBytes+headersMin:], test.data)
		content := copied(t, input)
		if bytes.Contains(content, []byte("secret")) || !bytes.HasSuffix(content, []byte(test.data)[:test.kept]) ||
			len(content) != fileHeaderBytes+packetHeaderBytes+headersMin+test.kept {
			t.Errorf("%s: %q", name, content[fileHeaderBytes+packetHeaderBytes+headersMin:])
		}
	}
}

func TestAnInputThatBreaksOffLeavesItsWholePackets(t *testing.T) {
	input := savefile(0x0800)
	for cut := range len(input) {
		content := copied(t, input[:cut])
		if want := min(cut/fileHeaderBytes, 1) * fileHeaderBytes; len(content) != want {
			t.Errorf("cut at %d: %d bytes, want %d", cut, len(content), want)
		}
	}
}
