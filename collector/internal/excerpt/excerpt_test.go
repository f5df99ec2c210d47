package excerpt_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"connlab/collector/internal/excerpt"
	"connlab/collector/internal/flow"
	"connlab/collector/internal/flowfile"
	"connlab/collector/internal/flowtest"
	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
)

const client, server = "10.0.0.1:40000", "10.0.0.2:8080"

// always is a connection from the beginning to the end of all time.
func always(id int64, client, server string) excerpt.Connection {
	return excerpt.Connection{
		ID: id, Client: netip.MustParseAddrPort(client), Server: netip.MustParseAddrPort(server),
		FirstUs: math.MinInt64, LastUs: math.MaxInt64,
	}
}

func read(t testing.TB, capture []byte, chosen ...excerpt.Connection) ([]excerpt.Packet, *flow.Summary) {
	t.Helper()
	file, err := pcapfile.Open(flowtest.Save(t, capture))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var packets []excerpt.Packet
	summary, err := excerpt.Read([]*pcapfile.File{file}, chosen, func(p *excerpt.Packet) error {
		packets = append(packets, *p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packets, summary
}

func plain(c *flowtest.Conversation) []byte {
	return flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, 128, flowtest.Packets(flowtest.Ethernet, c.Segments))
}

// places are where the packets' numbers stand.
func places(packets []excerpt.Packet) (seqs, acks []int64) {
	for _, p := range packets {
		seqs, acks = append(seqs, p.Seq), append(acks, p.Ack)
	}
	return seqs, acks
}

func TestEveryFormatAndLinkGivesTheSamePackets(t *testing.T) {
	for _, ends := range [][2]string{{client, server}, {"[fd00::1]:40000", "[fd00::2]:8080"}} {
		c := flowtest.NewConversation(ends[0], ends[1], 0xfffffff0, 7).
			Open().Data(flowtest.Client, 100).Data(flowtest.Server, 3000).Close(flowtest.Server)
		for _, format := range flowtest.Formats {
			for _, link := range flowtest.Links {
				frames := flowtest.Packets(link, c.Segments)
				got, _ := read(t, flowtest.Capture(format, link.Type, 128, frames), always(5, ends[0], ends[1]))
				if len(got) != len(c.Segments) {
					t.Fatalf("%s %s: %d packets", format.Name, link.Name, len(got))
				}
				for i, s := range c.Segments {
					p := got[i]
					from := flow.Client
					if s.From == c.Ends[flowtest.Server] {
						from = flow.Server
					}
					cut := max(len(frames[i].Data)-128, 0)
					if p.Connection != 5 || p.Number != uint64(i+1) || p.From != from || p.Flags != s.Flags || p.RawSeq != s.Seq || p.RawAck != s.Ack ||
						int(p.PayloadBytes) != s.Payload || p.Window != s.Window || int(p.CutBytes) != cut ||
						flow.Microseconds(p.TimeNs) != flow.Microseconds(s.TimeNs) || p.FineClock != format.Nano {
						t.Errorf("%s %s: %+v\nwant %+v", format.Name, link.Name, p, s)
					}
				}
				seqs, acks := places(got)
				if want := []int64{0, 0, 1, 1, 1, 3001, 101, 101, 3002}; !slices.Equal(seqs, want) {
					t.Errorf("%s %s: seq %v, want %v", format.Name, link.Name, seqs, want)
				}
				if want := []int64{0, 1, 1, 1, 101, 101, 3002, 3002, 102}; !slices.Equal(acks, want) {
					t.Errorf("%s %s: ack %v, want %v", format.Name, link.Name, acks, want)
				}
			}
		}
	}
}

func TestOnlyTheChosenConnectionsAndTimesAreRead(t *testing.T) {
	c := flowtest.NewConversation(client, server, 1, 2).Open().Data(flowtest.Client, 10)
	other := flowtest.NewConversation("10.0.0.1:40001", server, 1, 2).Wait(100).Open()
	capture := plain(&flowtest.Conversation{Segments: append(c.Segments, other.Segments...)})
	us := flow.Microseconds(flowtest.StartNs)

	one, two, turned := always(1, client, server), always(2, client, server), always(3, server, client)
	one.FirstUs, one.LastUs = us+2, us+3 // the SYN is at 1
	two.FirstUs = us + 4
	turned.LastUs = us + 1
	got, summary := read(t, capture, one, two, turned)
	type named struct {
		connection int64
		number     uint64
		from       flow.Side
		seq        int64
	}
	var found []named
	for _, p := range got {
		found = append(found, named{p.Connection, p.Number, p.From, p.Seq})
	}
	want := []named{{3, 1, flow.Server, 0}, {1, 2, flow.Server, 0}, {1, 3, flow.Client, 1}, {2, 4, flow.Client, 1}}
	if !slices.Equal(found, want) || summary.Packets != 7 {
		t.Errorf("%v of %d, want %v", found, summary.Packets, want)
	}
}

func TestNumbersOutOfTheOrdinary(t *testing.T) {
	syn, data, reset := packet.SYN, packet.ACK, packet.RST
	for _, c := range []struct {
		name string
		from []flowtest.Segment // the client's
		want []int64
	}{
		{"from the middle, and from before it", []flowtest.Segment{{Seq: 500, Flags: data}, {Seq: 100, Flags: data}, {Seq: 501, Flags: data}}, []int64{1, -399, 2}},
		{"a stray", []flowtest.Segment{{Seq: 0xffff_fff0, Flags: syn}, {Seq: 0x8000_0002, Flags: reset}, {Seq: 0xffff_fff1, Flags: data}}, []int64{0, -0x7fff_ffee, 1}},
		{"a SYN sent again, much later", []flowtest.Segment{{Seq: 9, Flags: syn}, {Seq: 1 << 30, Flags: data}, {Seq: 3 << 29, Flags: data}, {Seq: 9, Flags: syn}, {Seq: 1<<31 + 9, Flags: data}}, []int64{0, 1<<30 - 9, 3<<29 - 9, 0, 1 << 31}},
		{"a SYN with another number", []flowtest.Segment{{Seq: 9, Flags: syn}, {Seq: 1 << 31, Flags: syn}, {Seq: 1<<31 + 1, Flags: data}}, []int64{0, 0, 1}},
	} {
		ends := flowtest.NewConversation(client, server, 0, 0)
		for _, s := range c.from {
			s.From, s.To, s.TimeNs = ends.Ends[flowtest.Client], ends.Ends[flowtest.Server], flowtest.StartNs
			ends.Segments = append(ends.Segments, s)
		}
		got, _ := read(t, plain(ends), always(1, client, server))
		if seqs, _ := places(got); !slices.Equal(seqs, c.want) {
			t.Errorf("%s: %v, want %v", c.name, seqs, c.want)
		}
	}
}

func TestChosenByTheirRecordsPacketsAreTheRecords(t *testing.T) {
	traffic := flowtest.Traffic{Connections: 300, Exchanges: 3, GapUs: 500, Faulty: true}
	segments := traffic.Segments(rand.New(rand.NewPCG(5, 6)))
	capture := plain(&flowtest.Conversation{Segments: segments})
	file, err := pcapfile.Open(flowtest.Save(t, capture))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	result, err := flow.Reduce([]*pcapfile.File{file})
	if err != nil {
		t.Fatal(err)
	}
	var records bytes.Buffer
	if err := flowfile.WriteJSON(&records, result); err != nil {
		t.Fatal(err)
	}
	chosen, err := excerpt.Chosen(&records)
	if err != nil || len(chosen) != result.Len() {
		t.Fatalf("%d of %d: %v", len(chosen), result.Len(), err)
	}
	packets, summary := read(t, capture, chosen...)
	if !reflect.DeepEqual(*summary, func() flow.Summary { s := result.Summary; s.Flows, s.MissingBytes = 0, 0; return s }()) {
		t.Errorf("%+v\nwant %+v", *summary, result.Summary)
	}
	type sum struct{ packets, bytes uint64 }
	got := map[int64]*[2]sum{}
	for _, p := range packets {
		if got[p.Connection] == nil {
			got[p.Connection] = new([2]sum)
		}
		got[p.Connection][p.From].packets++
		got[p.Connection][p.From].bytes += uint64(p.PayloadBytes)
	}
	between := map[[2]netip.AddrPort]int{} // the same sockets, whichever is the client
	for _, c := range chosen {
		between[[2]netip.AddrPort{c.Client, c.Server}]++
		between[[2]netip.AddrPort{c.Server, c.Client}]++
	}
	var f flow.Flow
	compared := 0
	reader := result.Reader()
	for i := range result.Len() {
		reader.Read(i, &f)
		if f.StrayPackets > 0 || between[[2]netip.AddrPort{f.Client.Address, f.Server.Address}] > 1 {
			continue // the times of two connections between the same sockets may overlap
		}
		compared++
		want := [2]sum{{f.Client.Packets, f.Client.PayloadBytes}, {f.Server.Packets, f.Server.PayloadBytes}}
		if *got[int64(f.ID)] != want {
			t.Errorf("flow %d: %v, want %v", f.ID, *got[int64(f.ID)], want)
		}
	}
	if compared < 100 {
		t.Errorf("only %d flows were compared", compared)
	}
}

func TestAVisitorsErrorEndsTheReading(t *testing.T) {
	file, err := pcapfile.Open(flowtest.Save(t, plain(flowtest.NewConversation(client, server, 1, 2).Open())))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	enough := errors.New("enough")
	visits := 0
	_, err = excerpt.Read([]*pcapfile.File{file}, []excerpt.Connection{always(1, client, server)}, func(*excerpt.Packet) error {
		visits++
		return enough
	})
	if !errors.Is(err, enough) || visits != 1 {
		t.Errorf("%v after %d visits", err, visits)
	}
}

func TestMemoryDoesNotGrowWithPackets(t *testing.T) {
	c := flowtest.NewConversation(client, server, 1, 2).Open()
	for range 100_000 {
		c.Data(flowtest.Client, 1).ACK(flowtest.Server)
	}
	file, err := pcapfile.Open(flowtest.Save(t, plain(c)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	writer := flowfile.NewPacketWriter(discard{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = excerpt.Read([]*pcapfile.File{file}, []excerpt.Connection{always(1, client, server)}, writer.Write)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; err != nil || grown > 1<<20 {
		t.Errorf("%d bytes were allocated (%v)", grown, err)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// FuzzRead reads anything that begins like a capture, with anything that begins
// like chosen connections.
func FuzzRead(f *testing.F) {
	c := flowtest.NewConversation(client, server, 0xffffffff, 5).
		Open().Data(flowtest.Client, 100).Again(flowtest.Client).Data(flowtest.Server, 300).Close(flowtest.Server)
	row, err := json.Marshal(map[string]any{
		"id": 1, "client_address": "10.0.0.1", "client_port": 40000, "server_address": "10.0.0.2", "server_port": 8080,
		"first_time_us": 0, "last_time_us": int64(math.MaxInt64),
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, format := range flowtest.Formats {
		f.Add(flowtest.Capture(format, flowtest.Ethernet.Type, 96, flowtest.Packets(flowtest.Ethernet, c.Segments)), string(row))
	}
	path := filepath.Join(f.TempDir(), "capture")
	f.Fuzz(func(t *testing.T, capture []byte, lines string) {
		chosen, err := excerpt.Chosen(strings.NewReader(lines))
		if err != nil {
			return
		}
		file, err := pcapfile.Open(flowtest.SaveAs(t, path, capture))
		if err != nil {
			return
		}
		defer file.Close()
		var last uint64
		summary, err := excerpt.Read([]*pcapfile.File{file}, chosen, func(p *excerpt.Packet) error {
			if p.Number < last {
				t.Errorf("packet %d comes after %d", p.Number, last)
			}
			last = p.Number
			return nil
		})
		if err != nil || last > summary.Packets {
			t.Errorf("packet %d of %d: %v", last, summary.Packets, err)
		}
	})
}
