package flow

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"connlab/collector/internal/flowtest"
	"connlab/collector/internal/packet"
	"connlab/collector/internal/pcapfile"
)

// FuzzReduce reduces anything that begins like a capture: in one shard, in
// four, and as a stream one packet after the other with all connections packed
// between them, which must all give the same.
func FuzzReduce(f *testing.F) {
	c := flowtest.NewConversation("10.0.0.1:40000", "10.0.0.2:8080", 0xffffffff, 5).
		Open().Data(flowtest.Client, 100).Again(flowtest.Client).Data(flowtest.Server, 300).Close(flowtest.Server)
	c.Next(77, 88).SYN().Again(flowtest.Client).RST(flowtest.Server)
	for _, format := range flowtest.Formats {
		for _, link := range flowtest.Links {
			f.Add(flowtest.Capture(format, link.Type, 96, flowtest.Packets(link, c.Segments)))
		}
	}
	own, err := filepath.Glob("testdata/*.pcap")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range own {
		capture, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(capture[:2000])
	}
	path := filepath.Join(f.TempDir(), "capture")
	f.Fuzz(func(t *testing.T, capture []byte) {
		file, err := pcapfile.Open(flowtest.SaveAs(t, path, capture))
		if err != nil {
			var foreign *pcapfile.ForeignError
			if !errors.As(err, &foreign) {
				t.Fatal(err)
			}
			return
		}
		defer file.Close()
		one, oneSummary := allOf(t, file, 1)
		four, fourSummary := allOf(t, file, 4)
		if !reflect.DeepEqual(one, four) || !reflect.DeepEqual(oneSummary, fourSummary) {
			t.Errorf("one shard gives %+v %+v\nfour give %+v %+v", oneSummary, one, fourSummary, four)
		}
		streamed := newReducer(1)
		streamed.shards[0].tracker.openMax = 0
		r, err := pcapfile.NewReader("stream", bytes.NewReader(capture))
		if err != nil {
			t.Fatal(err)
		}
		for {
			var rec pcapfile.Record
			var a arrival
			if err := r.Next(&rec); err != nil {
				break
			}
			if s := streamed.take(&rec, packet.Decode(rec.LinkType, rec.Data, rec.WireLen, &a.Segment), &a); s != nil {
				s.tracker.add(&a)
			}
		}
		got := streamed.finish()
		if flows := flowsOf(got); got.Summary.Packets != oneSummary.Packets || !reflect.DeepEqual(flows, one) {
			t.Errorf("a stream gives %+v %+v, a file %+v %+v", got.Summary, flows, oneSummary, one)
		}

		var packets uint64
		for _, flow := range one {
			packets += flow.Client.Packets + flow.Server.Packets
			for _, end := range []End{flow.Client, flow.Server} {
				if end.UniqueBytes > end.PayloadBytes || end.FirstData.Known != (end.PayloadBytes > 0) {
					t.Errorf("%+v", flow)
				}
			}
		}
		if packets != oneSummary.Kinds[packet.TCP] {
			t.Errorf("the flows have %d packets, the capture %d", packets, oneSummary.Kinds[packet.TCP])
		}
	})
}

func allOf(t *testing.T, file *pcapfile.File, shards int) ([]Flow, Summary) {
	t.Helper()
	result, err := reduce([]*pcapfile.File{file}, shards)
	if err != nil {
		t.Fatal(err)
	}
	return flowsOf(result), result.Summary
}

func flowsOf(result *Result) []Flow {
	flows := make([]Flow, result.Len())
	reader := result.Reader()
	for i := range flows {
		reader.Read(i, &flows[i])
	}
	return flows
}

func TestMemoryGrowsWithConnectionsNotWithPackets(t *testing.T) {
	r := newReducer(1)
	rec := pcapfile.Record{Data: make([]byte, 54), WireLen: 54}
	var a arrival
	a.SourcePort, a.DestinationPort, a.Flags = 40000, 8080, packet.ACK
	add := func() {
		for i := range 10_000 {
			rec.TimeNs++
			a.Seq += uint32(i % 3) // gaps open and close
			a.Payload = 2
			r.take(&rec, packet.TCP, &a).tracker.add(&a)
		}
	}
	add()
	if perPacket := testing.AllocsPerRun(10, add) / 10_000; perPacket > 0.001 {
		t.Errorf("%v allocations for each packet", perPacket)
	}
}
