package pcapfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"connlab/collector/internal/flowtest"
	"connlab/collector/internal/pcapfile"
)

var packets = []flowtest.Packet{
	{TimeNs: 1735689600_000123456, Data: []byte("the first packet")},
	{TimeNs: 1735689600_999999999, Data: []byte("x")},
	{TimeNs: 1735689601_000000000, Data: bytes.Repeat([]byte("long"), 50)},
	{TimeNs: 4294967295_000000001, Data: []byte("the last second of pcap")},
}

// read returns the records of a reader and why it ended.
func read(r *pcapfile.Reader) (records []pcapfile.Record, end error) {
	for {
		var rec pcapfile.Record
		if err := r.Next(&rec); err != nil {
			return records, err
		}
		rec.Data = bytes.Clone(rec.Data)
		records = append(records, rec)
	}
}

// readBoth reads a capture as a file and as a stream of small pieces, and
// reports where they differ.
func readBoth(t testing.TB, capture []byte) ([]pcapfile.Record, error) {
	t.Helper()
	return readBothAt(t, filepath.Join(t.TempDir(), "capture"), capture)
}

// readBothAt is readBoth by a file at path.
func readBothAt(t testing.TB, path string, capture []byte) ([]pcapfile.Record, error) {
	t.Helper()
	var records []pcapfile.Record
	file, end := pcapfile.Open(flowtest.SaveAs(t, path, capture))
	if end == nil {
		defer file.Close()
		r, err := file.NewReader()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		records, end = read(r)
	}
	var streamed []pcapfile.Record
	r, streamEnd := pcapfile.NewReader("stream", &dribble{capture})
	if streamEnd == nil {
		streamed, streamEnd = read(r)
	}
	if !reflect.DeepEqual(streamed, records) {
		t.Errorf("a stream gives %v, a file %v", streamed, records)
	}
	if why(streamEnd) != why(end) {
		t.Errorf("a stream ends with %q, a file with %q", why(streamEnd), why(end))
	}
	return records, end
}

// why returns what an error says, without the file's name.
func why(err error) string {
	_, message, _ := strings.Cut(err.Error(), ": ")
	return message
}

// dribble reads a few bytes at a time.
type dribble struct{ left []byte }

func (d *dribble) Read(to []byte) (int, error) {
	if len(d.left) == 0 {
		return 0, io.EOF
	}
	n := copy(to[:min(7, len(to))], d.left)
	d.left = d.left[n:]
	return n, nil
}

func TestEveryFormatGivesThePackets(t *testing.T) {
	const snaplen = 64
	for _, f := range flowtest.Formats {
		t.Run(f.Name, func(t *testing.T) {
			records, end := readBoth(t, flowtest.Capture(f, 1, snaplen, packets))
			if end != io.EOF || len(records) != len(packets) {
				t.Fatalf("%d records and %v, want %d and EOF", len(records), end, len(packets))
			}
			for i, p := range packets {
				want := pcapfile.Record{
					TimeNs: p.TimeNs, Data: p.Data[:min(len(p.Data), snaplen)],
					WireLen: uint32(len(p.Data)), LinkType: 1, FineClock: f.Nano,
				}
				if !f.Nano {
					want.TimeNs -= want.TimeNs % 1000
				}
				if got := records[i]; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("record %d is %+v, want %+v", i+1, got, want)
				}
			}
		})
	}
}

func TestACutCaptureGivesWhatIsWholeAndTheOffset(t *testing.T) {
	for _, f := range flowtest.Formats {
		whole := flowtest.Capture(f, 1, 64, packets)
		ends := []int{len(flowtest.Capture(f, 1, 64, nil))} // where records end
		for i := range packets {
			ends = append(ends, len(flowtest.Capture(f, 1, 64, packets[:i+1])))
		}
		for length := ends[0]; length < len(whole); length++ {
			count := 0
			for ends[count+1] <= length {
				count++
			}
			records, end := readBoth(t, whole[:length])
			if len(records) != count {
				t.Fatalf("%s cut to %d bytes: %d records, want %d", f.Name, length, len(records), count)
			}
			var damage *pcapfile.DamageError
			switch {
			case length == ends[count]:
				if end != io.EOF {
					t.Fatalf("%s cut to %d bytes, between records: %v", f.Name, length, end)
				}
			case !errors.As(end, &damage):
				t.Fatalf("%s cut to %d bytes: %v", f.Name, length, end)
			case damage.Offset != int64(ends[count]) || damage.PacketsRead != uint64(count) || !strings.Contains(damage.Why, "the file ends inside"):
				t.Fatalf("%s cut to %d bytes: %+v, want offset %d", f.Name, length, damage, ends[count])
			}
		}
	}
}

func TestACutHeaderIsNoPanic(t *testing.T) {
	for _, f := range flowtest.Formats {
		header := flowtest.Capture(f, 1, 64, nil)
		for length := range header {
			records, end := readBoth(t, header[:length])
			if len(records) > 0 || end == nil {
				t.Errorf("%s cut to %d bytes: %d records, %v", f.Name, length, len(records), end)
			}
		}
	}
}

func TestWhatIsNoCaptureIsSaidSo(t *testing.T) {
	for _, c := range []struct{ content, why string }{
		{"", "it is empty"},
		{"abc", "it has only 3 bytes"},
		{"GET / HTTP/1.1\r\n", "it begins with the bytes 47 45 54 20, neither pcap, pcapng nor snoop"},
		{"\x1f\x8b\x08\x00gzip", "it is compressed by gzip: decompress it first"},
		{"\x28\xb5\x2f\xfdzstd", "it is compressed by zstd: decompress it first"},
		{"snoop\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x08", "it is in the snoop format, version 2, with the datalink type 8: convert it with editcap -F pcap"},
		{"snoop\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x04", "it begins with the bytes 73 6e 6f 6f, neither pcap, pcapng nor snoop"},
		{"\x34\xcd\xb2\xa1....", "it is in the modified pcap format of old patched libpcaps: convert it with editcap -F pcap"},
	} {
		_, end := readBoth(t, []byte(c.content))
		var foreign *pcapfile.ForeignError
		if !errors.As(end, &foreign) || foreign.Why != c.why {
			t.Errorf("%q: %v, want %s", c.content, end, c.why)
		}
	}
	folder := t.TempDir()
	for name, why := range map[string]string{folder: "it is a directory", filepath.Join(folder, "none"): "no such file or directory"} {
		_, err := pcapfile.Open(name)
		if want := name + ": not a capture that can be read: " + why; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDamageIsSaidWithItsOffset(t *testing.T) {
	pcap, ng := flowtest.Formats[0], flowtest.Formats[4]
	good := func(f flowtest.Format) []byte { return flowtest.Capture(f, 1, 64, packets[:2]) }
	uint32s := func(values ...uint32) (b []byte) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	for _, c := range []struct {
		name    string
		capture []byte
		at      int // behind the good part
		why     string
	}{
		{"a record too long", append(good(pcap), uint32s(0, 0, 300_000, 300_000)...), 0, "a record claims 300000 captured bytes"},
		{"a block too short", append(good(ng), uint32s(6, 8, 8)...), 0, "a block of type 0x6 claims a length of 8 bytes"},
		{"a block of odd length", append(good(ng), uint32s(6, 33, 33)...), 0, "a block of type 0x6 claims a length of 33 bytes"},
		{"a packet block too long", append(good(ng), uint32s(6, 1<<30, 0)...), 0, "a block of type 0x6 claims a length of 1073741824 bytes"},
		{"two lengths", append(good(ng), uint32s(6, 32, 0, 0, 0, 0, 0, 36)...), 0, "a block of type 0x6 gives its length as 32 and as 36 bytes"},
		{"a packet block without room", append(good(ng), uint32s(6, 16, 0, 16)...), 0, "a block of type 0x6 is too short: 16 bytes"},
		{"an unknown interface", ng.Block(good(ng), 6, ng.PacketBody(flowtest.Packet{Interface: 1}, 64)), 0, "a packet names interface 1 of 1"},
		{"more data than the block", ng.Block(good(ng), 6, uint32s(0, 0, 0, 100, 100)), 0, "a packet claims 100 captured bytes in a block of 32"},
		{"a strange byte order", append(good(ng), uint32s(0x0a0d0d0a, 28, 0x11223344)...), 0, "byte-order magic 44 33 22 11"},
		{"a packet without an interface", ng.Block(ng.Block(good(ng), 0x0a0d0d0a, uint32s(0x1a2b3c4d, 1, 0, 0)), 3, uint32s(0)), 28, "a packet stands before any interface"},
	} {
		records, end := readBoth(t, c.capture)
		var damage *pcapfile.DamageError
		if !errors.As(end, &damage) {
			t.Errorf("%s: %v", c.name, end)
			continue
		}
		format := pcap
		if !bytes.HasPrefix(c.capture, good(pcap)[:4]) {
			format = ng
		}
		if want := int64(len(good(format)) + c.at); len(records) != 2 || damage.PacketsRead != 2 || damage.Offset != want || !strings.Contains(damage.Why, c.why) {
			t.Errorf("%s: %d records and %+v, want offset %d and %q", c.name, len(records), damage, want, c.why)
		}
	}
}

func TestInterfacesHaveTheirOwnLinkTypeAndClock(t *testing.T) {
	little := flowtest.Formats[4]
	option := func(code uint16, value ...byte) []byte {
		b := binary.LittleEndian.AppendUint16(nil, code)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
		b = append(b, value...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		return b
	}
	offset := binary.LittleEndian.AppendUint64(nil, 1000)
	for _, c := range []struct {
		name    string
		options []byte
		ticks   uint64
		ns      int64
		fine    bool
	}{
		{"microseconds by default", nil, 5_000_001, 5_000_001_000, false},
		{"milliseconds", option(9, 3), 5_001, 5_001_000_000, false},
		{"nanoseconds", option(9, 9), 5_000_000_001, 5_000_000_001, true},
		{"picoseconds, rounded down", option(9, 12), 5_000_000_001_999, 5_000_000_001, true},
		{"2^-10 s", option(9, 0x8a), 1024 + 512, 1_500_000_000, true},
		{"2^-6 s", option(9, 0x86), 96, 1_500_000_000, false},
		{"an offset", option(14, offset...), 5_000_000, 1005_000_000_000, false},
	} {
		section := binary.LittleEndian.AppendUint32(nil, 0x1a2b3c4d)
		section = append(section, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255)
		capture := little.Block(nil, 0x0a0d0d0a, section)
		capture = little.Block(capture, 1, little.InterfaceBody(101, 0))
		capture = little.Block(capture, 1, append([]byte{113, 0, 0, 0, 0, 0, 0, 0}, c.options...))
		body := binary.LittleEndian.AppendUint32(nil, 1)
		body = binary.LittleEndian.AppendUint32(body, uint32(c.ticks>>32))
		body = binary.LittleEndian.AppendUint32(body, uint32(c.ticks))
		body = append(body, 4, 0, 0, 0, 9, 0, 0, 0)
		capture = little.Block(capture, 6, append(body, "data"...))
		records, end := readBoth(t, capture)
		if end != io.EOF || len(records) != 1 {
			t.Errorf("%s: %d records, %v", c.name, len(records), end)
			continue
		}
		want := pcapfile.Record{TimeNs: c.ns, Data: []byte("data"), WireLen: 9, LinkType: 113, FineClock: c.fine}
		if fmt.Sprint(records[0]) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", c.name, records[0], want)
		}
	}
}

func TestASnoopFileGivesThePacketsAndItsCutEnds(t *testing.T) {
	whole := flowtest.Snoop(64, packets)
	ends := []int{len(flowtest.Snoop(64, nil))}
	for i := range packets {
		ends = append(ends, len(flowtest.Snoop(64, packets[:i+1])))
	}
	for length := range len(whole) + 1 {
		count := 0
		for count < len(packets) && ends[count+1] <= length {
			count++
		}
		records, end := readBoth(t, whole[:length])
		if len(records) != count || (end == io.EOF) != (length == ends[count]) {
			t.Fatalf("cut to %d bytes: %d records and %v, want %d", length, len(records), end, count)
		}
	}
	records, _ := readBoth(t, whole)
	for i, p := range packets {
		want := pcapfile.Record{
			TimeNs: p.TimeNs - p.TimeNs%1000, Data: p.Data[:min(len(p.Data), 64)], WireLen: uint32(len(p.Data)), LinkType: 1,
		}
		if fmt.Sprint(records[i]) != fmt.Sprint(want) {
			t.Errorf("record %d is %+v, want %+v", i+1, records[i], want)
		}
	}
}

func TestDamageOfASnoopFileIsSaid(t *testing.T) {
	for _, c := range []struct {
		at    int // in the first record's header
		value uint32
		why   string
	}{
		{4, 300_000, "a record claims 300000 captured bytes"},
		{8, 39, "a record with 16 captured bytes claims a length of 39 bytes"},
		{8, 1 << 30, "a record with 16 captured bytes claims a length of 1073741824 bytes"},
	} {
		capture := flowtest.Snoop(64, packets)
		binary.BigEndian.PutUint32(capture[16+c.at:], c.value)
		_, end := readBoth(t, capture)
		var damage *pcapfile.DamageError
		if !errors.As(end, &damage) || damage.Offset != 16 || damage.Why != c.why {
			t.Errorf("%v, want %s", end, c.why)
		}
	}
	capture := flowtest.Snoop(64, packets[:1])
	binary.BigEndian.PutUint32(capture[16+20:], 1e6)
	if records, end := readBoth(t, capture); end != io.EOF || !records[0].Untimed {
		t.Errorf("%+v, %v", records, end)
	}
}

func TestSectionsMayDifferInByteOrder(t *testing.T) {
	both := append(flowtest.Capture(flowtest.Formats[4], 1, 64, packets), flowtest.Capture(flowtest.Formats[7], 101, 64, packets)...)
	records, end := readBoth(t, both)
	if end != io.EOF || len(records) != 2*len(packets) {
		t.Fatalf("%d records, %v", len(records), end)
	}
	if a, b := records[0], records[len(packets)]; a.LinkType != 1 || b.LinkType != 101 || a.FineClock || !b.FineClock {
		t.Errorf("the sections' first packets are %+v and %+v", a, b)
	}
}

func TestASimplePacketHasNoTime(t *testing.T) {
	f := flowtest.Formats[4]
	capture := f.Block(flowtest.Capture(f, 1, 3, nil), 3, []byte{5, 0, 0, 0, 'a', 'b', 'c'})
	records, end := readBoth(t, capture)
	want := pcapfile.Record{Data: []byte("abc"), WireLen: 5, LinkType: 1, Untimed: true}
	if end != io.EOF || len(records) != 1 || fmt.Sprint(records[0]) != fmt.Sprint(want) {
		t.Errorf("%+v and %v, want %+v", records, end, want)
	}
}

func TestAFractionOfMoreThanASecondIsNoTime(t *testing.T) {
	for _, format := range flowtest.Formats {
		if format.NG {
			continue
		}
		perSecond := uint32(1e6)
		if format.Nano {
			perSecond = 1e9
		}
		for _, c := range []struct {
			fraction uint32
			untimed  bool
		}{{perSecond - 1, false}, {perSecond, true}, {1 << 31, true}, {1<<32 - 1, true}} {
			capture := flowtest.Capture(format, 1, 64, packets[:1])
			copy(capture[24+4:], format.Order.AppendUint32(nil, c.fraction))
			records, end := readBoth(t, capture)
			if end != io.EOF || len(records) != 1 || records[0].Untimed != c.untimed || c.untimed && records[0].TimeNs != 0 {
				t.Errorf("%s, %d: %+v, %v", format.Name, c.fraction, records, end)
			}
		}
	}
}

func TestAPacketBeyondAllClocksHasNoTimeAndReadingGoesOn(t *testing.T) {
	f := flowtest.Formats[4]
	section := f.Block(nil, 0x0a0d0d0a, binary.LittleEndian.AppendUint64([]byte{0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0}, ^uint64(0)))
	plain := append([]byte{1, 0, 0, 0}, 0, 0, 0, 0)
	off := append(bytes.Clone(plain), 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f) // if_tsoffset
	far := binary.LittleEndian.AppendUint64(nil, 1<<62)
	at := func(iface byte, ticks []byte) []byte {
		body := append([]byte{iface, 0, 0, 0}, ticks[4:]...)
		return append(append(body, ticks[:4]...), 4, 0, 0, 0, 9, 0, 0, 0, 'd', 'a', 't', 'a')
	}
	near := binary.LittleEndian.AppendUint64(nil, 5_000_001)
	capture := f.Block(f.Block(section, 1, plain), 1, off)
	for _, body := range [][]byte{at(0, near), at(0, far), at(1, near), at(0, near)} {
		capture = f.Block(capture, 6, body)
	}
	records, end := readBoth(t, capture)
	if end != io.EOF || len(records) != 4 {
		t.Fatalf("%d records, %v", len(records), end)
	}
	timed := pcapfile.Record{TimeNs: 5_000_001_000, Data: []byte("data"), WireLen: 9, LinkType: 1}
	untimed := pcapfile.Record{Data: []byte("data"), WireLen: 9, LinkType: 1, Untimed: true}
	for i, want := range []pcapfile.Record{timed, untimed, untimed, timed} {
		if fmt.Sprint(records[i]) != fmt.Sprint(want) {
			t.Errorf("record %d is %+v, want %+v", i+1, records[i], want)
		}
	}
}

func TestAFileThatShrinksMeanwhileIsDamage(t *testing.T) {
	path := flowtest.Save(t, flowtest.Capture(flowtest.Pcap, 1, 64, slices.Repeat(packets, 1000)))
	file, err := pcapfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := file.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	err = r.Guard(func() error {
		_, end := read(r)
		return end
	})
	var damage *pcapfile.DamageError
	if !errors.As(err, &damage) || !strings.Contains(damage.Why, "became shorter") {
		t.Errorf("%v", err)
	}
}

func FuzzReader(f *testing.F) {
	for _, format := range flowtest.Formats {
		capture := flowtest.Capture(format, 1, 64, packets)
		f.Add(capture)
		f.Add(capture[:len(capture)-5])
	}
	f.Add(flowtest.Snoop(64, packets))
	path := filepath.Join(f.TempDir(), "capture")
	f.Fuzz(func(t *testing.T, capture []byte) {
		records, end := readBothAt(t, path, capture)
		var damage *pcapfile.DamageError
		var foreign *pcapfile.ForeignError
		switch {
		case end == io.EOF:
		case errors.As(end, &foreign):
			if len(records) > 0 {
				t.Errorf("%d records of what is not a capture", len(records))
			}
		case errors.As(end, &damage):
			if damage.PacketsRead != uint64(len(records)) || damage.Offset < 0 || damage.Offset > int64(len(capture)) {
				t.Errorf("%d records, %d bytes, but %+v", len(records), len(capture), damage)
			}
		default:
			t.Errorf("ended by %v", end)
		}
	})
}
