package flow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connlab/collector/internal/flow"
	"connlab/collector/internal/flowtest"
	"connlab/collector/internal/packet"
)

const (
	client = flowtest.Client
	server = flowtest.Server
)

// scripts are connections whose flows are stated by hand; see describe.
var scripts = []struct {
	name   string
	script func(c *flowtest.Conversation)
	flows  []string
}{
	{"Plain", func(c *flowtest.Conversation) {
		c.Open().Data(client, 100).ACK(server).Data(server, 300).ACK(client).Close(client)
	}, []string{"syn 1 synack 1 established fin:client tw:client | 100 B | 300 B"}},
	{"ClosedByTheServer", func(c *flowtest.Conversation) {
		c.Open().Data(client, 100).Data(server, 300).Close(server)
	}, []string{"syn 1 synack 1 established fin:server tw:server | 100 B | 300 B"}},
	{"HandshakesAlone", func(c *flowtest.Conversation) { // the last FIN was not sent again in the time that it would be
		c.SYN().SYNACK().ACK(client).Hide().FIN(server).ACK(client).Hide().FIN(client).ACK(server).Hide()
		c.Wait(3e6).Next(9, 9).SYN()
	}, []string{"syn 1 synack 1 established fin:server tw:server | |", "reused syn 1 synack 0 none tw:none | |"}},
	{"HandshakesAloneAndALostFIN", func(c *flowtest.Conversation) {
		c.SYN().SYNACK().ACK(client).Hide().FIN(server).ACK(client).Hide().FIN(client).Wait(2e5).Again(client).Wait(4e6).Next(9, 9).SYN()
	}, []string{"syn 1 synack 1 established fin:server tw:? | |", "reused syn 1 synack 0 none tw:none | |"}},
	{"LostSYNHealed", func(c *flowtest.Conversation) {
		c.SYN().Wait(1e6).Again(client).SYNACK().ACK(client).Close(client)
	}, []string{"syn 2 synack 1 established fin:client tw:client | |"}},
	{"LostSYNsNeverAnswered", func(c *flowtest.Conversation) {
		c.SYN().Wait(1e6).Again(client).Wait(2e6).Again(client).Wait(4e6).Again(client).Wait(8e6).Again(client)
	}, []string{"syn 5 synack 0 none tw:none | |"}},
	{"LostSYNACK", func(c *flowtest.Conversation) {
		c.SYN().SYNACK().Wait(1e6).Again(client).Again(server).ACK(client).Close(server)
	}, []string{"syn 2 synack 2 established fin:server tw:server | |"}},
	{"LostSYNACKRepeatedUnasked", func(c *flowtest.Conversation) {
		c.SYN().SYNACK().Wait(1e6).Again(server).ACK(client).Close(server)
	}, []string{"syn 1 synack 2 established fin:server tw:server | |"}},
	{"LastACKMetAFullQueue", func(c *flowtest.Conversation) {
		c.Open().Data(client, 100).Wait(1e6)
		synACK := c.Segments[1]
		synACK.TimeNs = c.NowNs
		c.Segments = append(c.Segments, synACK)
		c.ACK(client)
	}, []string{"syn 1 synack 2 established none tw:? truncated_end | 100 B | "}},
	{"HalfOpenWithoutLastACK", func(c *flowtest.Conversation) {
		c.SYN().SYNACK().Wait(1e6).Again(server).Wait(2e6).Again(server)
	}, []string{"syn 1 synack 3 none tw:none | |"}},
	{"Refused", func(c *flowtest.Conversation) {
		c.SYN().RST(server)
	}, []string{"syn 1 synack 0 rst:server tw:none | | 1 rst"}},
	{"RSTInSYNRECV", func(c *flowtest.Conversation) {
		c.SYN().SYNACK().Send(client, packet.RST, 0) // as a host does that knows of no such connection
	}, []string{"syn 1 synack 1 rst:client tw:none | 1 rst |"}},
	{"RSTThatAcknowledgesTheSYNACK", func(c *flowtest.Conversation) {
		c.SYN().SYNACK().RST(client) // all that a capture of handshakes has of one aborted later
	}, []string{"syn 1 synack 1 established rst:client tw:none | 1 rst |"}},
	{"RSTWhenEstablishedByTheClient", func(c *flowtest.Conversation) {
		c.Open().Data(client, 10).RST(client)
	}, []string{"syn 1 synack 1 established rst:client tw:none | 10 B 1 rst |"}},
	{"RSTWhenEstablishedByTheServer", func(c *flowtest.Conversation) {
		c.Open().Data(client, 10).RST(server)
	}, []string{"syn 1 synack 1 established rst:server tw:none | 10 B | 1 rst"}},
	{"RSTInFINWAIT1", func(c *flowtest.Conversation) {
		c.Open().FIN(client).RST(server)
	}, []string{"syn 1 synack 1 established fin:client tw:none | | 1 rst"}},
	{"RSTInFINWAIT2", func(c *flowtest.Conversation) {
		c.Open().FIN(client).ACK(server).RST(server)
	}, []string{"syn 1 synack 1 established fin:client tw:none | | 1 rst"}},
	{"RSTByTheOneThatClosed", func(c *flowtest.Conversation) {
		c.Open().FIN(client).ACK(server).Data(server, 50).RST(client)
	}, []string{"syn 1 synack 1 established fin:client tw:none | 1 rst | 50 B"}},
	{"RSTInLASTACK", func(c *flowtest.Conversation) {
		c.Open().FIN(client).ACK(server).FIN(server).RST(client)
	}, []string{"syn 1 synack 1 established fin:client tw:none | 1 rst |"}},
	{"RSTAfterTheEnd", func(c *flowtest.Conversation) {
		c.Open().Close(client).RST(server)
	}, []string{"syn 1 synack 1 established fin:client tw:client | | 1 rst"}},
	{"HalfOpenAfterACrash", func(c *flowtest.Conversation) {
		c.Open().Data(client, 10).ACK(server).Wait(60e6).Data(client, 20)
		c.Send(server, packet.RST, 0)
	}, []string{"syn 1 synack 1 established rst:server tw:none | 30 B | 1 rst"}},
	{"VanishedPeer", func(c *flowtest.Conversation) {
		c.Open().Data(client, 10).Wait(2e5).Again(client).Wait(4e5).Again(client)
	}, []string{"syn 1 synack 1 established none tw:? truncated_end | 10 B 2 retransmissions |"}},
	{"SimultaneousClose", func(c *flowtest.Conversation) {
		c.Open().FIN(client).Lose().FIN(server).Lose()
		c.Segments = append(c.Segments, crossed(c)...)
	}, []string{"syn 1 synack 1 established fin:client simultaneous_close tw:both | |"}},
	{"SimultaneousOpen", func(c *flowtest.Conversation) {
		c.SYN().Send(server, packet.SYN, 0).SYNACK().Hide()
		c.Segments = append(c.Segments, simultaneous(c)...)
	}, []string{"syn 1 synack 1 established simultaneous_open none tw:? truncated_end | |"}},
	{"Reordered", func(c *flowtest.Conversation) {
		c.Open().Data(client, 100).Data(client, 100).Swap().ACK(server).Close(client)
	}, []string{"syn 1 synack 1 established fin:client tw:client | 200 B 1 out_of_order |"}},
	{"Duplicate", func(c *flowtest.Conversation) {
		c.Open().Data(server, 100).Again(server).ACK(client).Close(client)
	}, []string{"syn 1 synack 1 established fin:client tw:client | | 100 B 1 retransmissions"}},
	{"DuplicateACKs", func(c *flowtest.Conversation) {
		c.Open().Data(server, 100).ACK(client).Data(server, 100).Lose().
			Data(server, 100).Lose().ACK(client).Data(server, 100).Lose().ACK(client)
		rewind(c, client, 2) // the client keeps acknowledging the first 100 bytes
	}, []string{"syn 1 synack 1 established none tw:? truncated_end | 2 duplicate_acks | 400 B"}},
	{"MissedByTheCapture", func(c *flowtest.Conversation) {
		c.Open().Data(server, 100).Data(server, 70).Hide().Data(server, 100).ACK(client).Close(client)
	}, []string{"syn 1 synack 1 established fin:client tw:client | | 200 B 70 missing"}},
	{"PortReuse", func(c *flowtest.Conversation) {
		c.Open().Close(client).Wait(1e6).Next(9_000_000, 7_000_000).Open().Data(client, 5).Close(client)
	}, []string{
		"syn 1 synack 1 established fin:client tw:client | |",
		"reused syn 1 synack 1 established fin:client tw:client | 5 B |",
	}},
	{"PortReuseOfAnUnansweredOne", func(c *flowtest.Conversation) {
		c.SYN().Wait(1e6).Again(client).Wait(30e6).Next(9_000_000, 7_000_000).Open()
	}, []string{
		"syn 2 synack 0 none tw:none | |",
		"reused syn 1 synack 1 established none tw:? truncated_end | |",
	}},
	{"LateSegmentOfTheFormer", func(c *flowtest.Conversation) {
		c.Open().Close(server)
		late := c.Segments[len(c.Segments)-2] // the client's FIN
		c.Next(9_000_000, 7_000_000).SYN()
		late.TimeNs = c.Wait(1).NowNs
		c.Segments = append(c.Segments, late)
		c.SYNACK().ACK(client)
	}, []string{
		"syn 1 synack 1 established fin:server tw:server | |",
		"reused syn 1 synack 1 established none tw:? truncated_end | |",
	}},
	{"RSTOfTheFormerOne", func(c *flowtest.Conversation) {
		c.Open().Data(client, 100).ACK(server)
		challenge := c.Segments[len(c.Segments)-1]
		c.Next(c.Segments[0].Seq-1000, c.Segments[1].Seq-1000).Wait(1e6).SYN()
		again := c.Segments[len(c.Segments)-1]
		rst := again
		rst.Flags, rst.Seq = packet.RST, challenge.Ack
		for _, s := range []flowtest.Segment{challenge, rst, again} {
			s.TimeNs = c.Wait(1).NowNs
			c.Segments = append(c.Segments, s)
		}
		c.SYNACK().ACK(client)
	}, []string{
		"syn 1 synack 1 established rst:client tw:none | 100 B 1 rst |",
		"reused syn 2 synack 1 established none tw:? truncated_end | |",
	}},
	{"FastOpen", func(c *flowtest.Conversation) {
		c.Send(client, packet.SYN, 40).SYNACK().ACK(client).Close(client)
	}, []string{"syn 1 synack 1 established fin:client tw:client | 40 B |"}},
	{"BeganBeforeTheCapture", func(c *flowtest.Conversation) {
		c.Open().Data(client, 10)
		c.Segments = nil
		c.Data(server, 20).ACK(client).Close(server)
	}, []string{"inferred syn 0 synack 0 established fin:server tw:server truncated_start | | 20 B"}},
	{"SYNBeforeTheCapture", func(c *flowtest.Conversation) {
		c.SYN().Hide().SYNACK().ACK(client).Close(server)
	}, []string{"syn 0 synack 1 established fin:server tw:server truncated_start | |"}},
	{"RSTFromFarAway", func(c *flowtest.Conversation) {
		c.Open().Data(client, 10).ACK(server).RST(server)
		c.Segments[len(c.Segments)-1].Seq += 1 << 31
		c.Close(client)
	}, []string{"syn 1 synack 1 established fin:client tw:client 1 stray | 10 B |"}},
	{"RSTFromFarAwayThatAnswersTheSYN", func(c *flowtest.Conversation) {
		c.SYN().SYNACK().Lose().Wait(1e6).Again(client).RST(server) // a server that began anew
		c.Segments[len(c.Segments)-1].Seq += 1 << 31
	}, []string{"syn 2 synack 1 rst:server tw:none | | 1 rst"}},
	{"RSTWithData", func(c *flowtest.Conversation) {
		c.Open().Data(client, 10).Send(server, packet.RST|packet.ACK, 20) // a text that says why
	}, []string{"syn 1 synack 1 established rst:server tw:none | 10 B | 1 rst"}},
	{"MoreMissedThanAWindow", func(c *flowtest.Conversation) {
		c.Open().Data(server, 100)
		ends := [2]uint32{c.Segments[2].Seq, c.Segments[3].Seq + 100}
		c.Next(ends[0], ends[1]+1<<31-1<<20).Data(server, 100) // behind 2 GiB
	}, []string{"syn 1 synack 1 established none tw:? truncated_end 1 stray inexact | | 100 B"}},
	{"NumbersThatWentRound", func(c *flowtest.Conversation) {
		c.Open().Data(server, 100)
		ends := [2]uint32{c.Segments[2].Seq, c.Segments[3].Seq + 100}
		c.Next(ends[0], ends[1]-1<<29).Data(server, 100) // behind 3.5 GiB
	}, []string{"syn 1 synack 1 established none tw:? truncated_end inexact | | 100 B 1 retransmissions"}},
	{"KeepAliveProbe", func(c *flowtest.Conversation) {
		c.Open().Wait(60e6).Data(client, 1)
		c.Segments[len(c.Segments)-1].Seq -= 1
	}, []string{"syn 1 synack 1 established none tw:? truncated_end | 1 retransmissions |"}},
	{"StrayAfterAnEndedFormer", func(c *flowtest.Conversation) {
		c.Open().Data(server, 10).Close(server)
		beyond := c.Segments[len(c.Segments)-1] // of the server, and after its FIN
		beyond.Seq, beyond.Payload = beyond.Seq+1000, 50
		rst := beyond
		rst.Flags, rst.Seq, rst.Payload = packet.RST, beyond.Seq+1<<31, 0
		c.Next(9_000_000, 7_000_000).Wait(1e6).SYN()
		for _, s := range []flowtest.Segment{beyond, rst} {
			s.TimeNs = c.Wait(1).NowNs
			c.Segments = append(c.Segments, s)
		}
		c.SYNACK().ACK(client)
	}, []string{
		"syn 1 synack 1 established fin:server tw:server | | 10 B",
		"reused syn 1 synack 1 established none tw:? truncated_end 2 stray | |",
	}},
	{"OtherSYNACKAfterTheHandshake", func(c *flowtest.Conversation) {
		c.Open().Data(server, 10)
		other := c.Segments[1]
		other.Seq += 1 << 31
		other.TimeNs = c.Wait(1).NowNs
		c.Segments = append(c.Segments, other)
		c.ACK(client)
	}, []string{"syn 1 synack 1 established none tw:? truncated_end 1 stray | | 10 B"}},
}

// handshakes are those of TLS, by whose packets each column is.
var handshakes = []struct {
	name   string
	script func(c *flowtest.Conversation)
	times  string // numbers of the packets of the ClientHello, the ServerHello, the client's reply, and the end
}{
	{"Version13", func(c *flowtest.Conversation) {
		c.Record(client, flowtest.ClientHello).Data(client, 300).Record(server, flowtest.ServerHello).Data(server, 900)
		c.Record(client, flowtest.ChangeCipherSpec).Record(server, flowtest.EncryptedData)
	}, "4 6 8 8"},
	{"Version12", func(c *flowtest.Conversation) {
		c.Record(client, flowtest.ClientHello).Record(server, flowtest.ServerHello).Record(client, flowtest.ClientKeyExchange)
		c.ACK(server).Record(server, flowtest.NewSessionTicket).Record(client, flowtest.EncryptedData)
	}, "4 5 6 8"},
	{"Version12WithoutTickets", func(c *flowtest.Conversation) {
		c.Record(client, flowtest.ClientHello).Record(server, flowtest.ServerHello).Record(client, flowtest.ClientKeyExchange)
		c.Record(server, flowtest.ChangeCipherSpec)
	}, "4 5 6 7"},
	{"Resumed12", func(c *flowtest.Conversation) {
		c.Record(client, flowtest.ClientHello).Record(server, flowtest.ServerHello).Record(client, flowtest.ChangeCipherSpec)
	}, "4 5 6 6"},
	{"AskedOnceMore", func(c *flowtest.Conversation) { // by another ServerHello, which names the group to use
		c.Record(client, flowtest.ClientHello).Record(server, flowtest.ServerHello).Record(client, flowtest.ChangeCipherSpec)
		c.Record(server, flowtest.ServerHello).Record(client, flowtest.EncryptedData).Record(server, flowtest.EncryptedData)
	}, "4 5 8 8"},
	{"RefusedByTheServer", func(c *flowtest.Conversation) {
		c.Record(client, flowtest.ClientHello).Record(server, flowtest.HandshakeFailure).Close(server)
	}, "4 - - -"},
	{"RefusedByTheClient", func(c *flowtest.Conversation) {
		c.Record(client, flowtest.ClientHello).Record(server, flowtest.ServerHello).Record(client, flowtest.HandshakeFailure)
	}, "4 5 - -"},
	{"ReplyRefused", func(c *flowtest.Conversation) {
		c.Record(client, flowtest.ClientHello).Record(server, flowtest.ServerHello).Record(client, flowtest.ChangeCipherSpec)
		c.Record(server, flowtest.HandshakeFailure).Close(server)
	}, "4 5 6 -"},
	{"SilentServer", func(c *flowtest.Conversation) {
		c.Record(client, flowtest.ClientHello).ACK(server).Wait(1e6).Again(client)
	}, "4 - - -"},
	{"ServerHelloTwice", func(c *flowtest.Conversation) { // the client's ACK got lost
		c.Record(client, flowtest.ClientHello).Record(server, flowtest.ServerHello).Record(client, flowtest.ChangeCipherSpec)
		c.Again(server).Record(server, flowtest.EncryptedData)
	}, "4 5 6 6"},
	{"AfterAWordInClear", func(c *flowtest.Conversation) {
		c.Data(client, 8).Data(server, 1).Record(client, flowtest.ClientHello).Record(server, flowtest.ServerHello)
	}, "6 7 - -"},
	{"BeganBeforeTheCapture", func(c *flowtest.Conversation) {
		c.Record(client, flowtest.ClientHello)
		c.Segments = nil
		c.Record(server, flowtest.ServerHello).Record(client, flowtest.ChangeCipherSpec).Record(server, flowtest.EncryptedData)
	}, "- - - -"},
	{"NoTLS", func(c *flowtest.Conversation) {
		c.Data(client, 200).Data(server, 200)
	}, "- - - -"},
}

func TestTheTimesOfATLSHandshakeAreThoseOfItsPackets(t *testing.T) {
	for _, h := range handshakes {
		// Of a capture of headers the collector keeps the head of a record, and of a message of the handshake one byte more.
		for _, snaplen := range []int{128, 14 + 20 + 32 + 6, 14 + 20 + 32} {
			c := flowtest.NewConversation("10.0.0.1:40000", "10.0.0.2:8443", 0xffffff00, 1000).Open()
			h.script(c)
			packets := flowtest.Packets(flowtest.Ethernet, c.Segments)
			path := flowtest.Save(t, flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, snaplen, packets))
			flows, _ := reduceFile(t, path)
			f, times := &flows[0], map[int64]int{}
			for i, s := range c.Segments {
				times[s.TimeNs/1000] = i + 1
			}
			var got []string
			for _, at := range []flow.Instant{f.ClientHello, f.ServerHello, f.ClientReply, f.TLSEnd} {
				number := "-"
				if at.Known {
					number = fmt.Sprint(times[at.Ns/1000])
				}
				got = append(got, number)
			}
			want := h.times
			if snaplen == 66 {
				want = "- - - -" // no byte of the data was kept
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("%s, %d bytes of each packet: %s, want %s", h.name, snaplen, got, want)
			}
			compareWithOracle(t, h.name, path, false)
		}
	}
}

// crossed returns the acknowledgements that end a simultaneous close.
func crossed(c *flowtest.Conversation) []flowtest.Segment {
	n := len(c.Segments)
	a, b := c.Segments[n-2], c.Segments[n-1]
	for s, fin := range map[*flowtest.Segment]flowtest.Segment{&a: c.Segments[n-1], &b: c.Segments[n-2]} {
		s.Flags, s.Seq, s.Ack = packet.ACK, s.Seq+1, fin.Seq+1
	}
	a.TimeNs, b.TimeNs = b.TimeNs+1000, b.TimeNs+2000
	return []flowtest.Segment{a, b}
}

// simultaneous returns the SYN-ACKs that end a simultaneous open.
func simultaneous(c *flowtest.Conversation) []flowtest.Segment {
	a, b := c.Segments[0], c.Segments[1]
	a.Flags, a.Ack = packet.SYN|packet.ACK, b.Seq+1
	b.Flags, b.Ack = packet.SYN|packet.ACK, a.Seq+1
	a.TimeNs, b.TimeNs = b.TimeNs+1000, b.TimeNs+2000
	return []flowtest.Segment{a, b}
}

// rewind makes the last n acknowledgements of an end say the same as the one
// before them.
func rewind(c *flowtest.Conversation, from, n int) {
	var last []*flowtest.Segment
	for i := range c.Segments {
		if c.Segments[i].From == c.Ends[from] {
			last = append(last, &c.Segments[i])
		}
	}
	last = last[len(last)-n-1:]
	for _, s := range last[1:] {
		s.Ack = last[0].Ack
	}
}

// describe says what is special about a flow: how it began and ended, and what
// each side sent.
func describe(f *flow.Flow) string {
	var w []string
	say := func(condition bool, format string, arguments ...any) {
		if condition {
			w = append(w, fmt.Sprintf(format, arguments...))
		}
	}
	say(f.ReusedPortOf != 0, "reused")
	say(f.ClientInferred, "inferred")
	say(true, "syn %d synack %d", f.SYNs, f.SYNACKs)
	say(f.Established, "established")
	say(f.SimultaneousOpen, "simultaneous_open")
	if f.CloseKind == flow.NotClosed {
		say(true, "none")
	} else {
		say(true, "%v:%v", f.CloseKind, f.ClosedBy)
	}
	say(f.SimultaneousClose, "simultaneous_close")
	say(f.TimeWaitKnown, "tw:%v", f.TimeWaitOwner)
	say(!f.TimeWaitKnown, "tw:?")
	say(f.SYNs == 0, "truncated_start")
	say(f.TruncatedEnd, "truncated_end")
	say(f.StrayPackets > 0, "%d stray", f.StrayPackets)
	say(!f.SequenceExact, "inexact")
	for _, end := range []flow.End{f.Client, f.Server} {
		say(true, "|")
		say(end.UniqueBytes > 0, "%d B", end.UniqueBytes)
		say(end.MissingBytes > 0, "%d missing", end.MissingBytes)
		say(end.Retransmissions > 0, "%d retransmissions", end.Retransmissions)
		say(end.OutOfOrder > 0, "%d out_of_order", end.OutOfOrder)
		say(end.DuplicateACKs > 0, "%d duplicate_acks", end.DuplicateACKs)
		say(end.RSTs > 0, "%d rst", end.RSTs)
	}
	return strings.Join(w, " ")
}

// scripted returns the segments of all scripts, each on a port of its own, and
// the descriptions of their flows.
func scripted(ipv6 bool) (segments []flowtest.Segment, flows []string) {
	addresses := [2]string{"10.0.0.1", "10.0.0.2"}
	if ipv6 {
		addresses = [2]string{"[fd00::1]", "[fd00::2]"}
	}
	nowNs := int64(flowtest.StartNs)
	// Initial sequence numbers after which the data wraps, at once or soon, or does not.
	isns := [][2]uint32{{0xffffffff, 0xfffffffe}, {0xffffffd0, 0xfffffff0}, {1_000_000, 2_000_000}, {1 << 31, 1<<31 - 1}}
	for i, isn := range isns {
		for j, s := range scripts {
			c := flowtest.NewConversation(
				fmt.Sprintf("%s:%d", addresses[0], 40000+i*len(scripts)+j), addresses[1]+":8080", isn[0], isn[1])
			c.NowNs = nowNs
			s.script(c)
			nowNs = c.NowNs + 1e6
			segments = append(segments, c.Segments...)
			flows = append(flows, s.flows...)
		}
	}
	return segments, flows
}

func TestScriptedConnectionsGiveTheFlowsStated(t *testing.T) {
	for _, s := range scripts {
		for _, isn := range [][2]uint32{{1000, 2000}, {0xffffffff, 0xfffffffe}, {0xffffffd0, 0xfffffff0}} {
			c := flowtest.NewConversation("10.0.0.1:40000", "10.0.0.2:8080", isn[0], isn[1])
			s.script(c)
			packets := flowtest.Packets(flowtest.Ethernet, c.Segments)
			path := flowtest.Save(t, flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, 128, packets))
			flows, _ := reduceFile(t, path)
			var got, want []string
			for i := range flows {
				got = append(got, describe(&flows[i]))
			}
			for _, f := range s.flows {
				want = append(want, strings.Join(strings.Fields(f), " "))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s from %v:\n got %s\nwant %s", s.name, isn, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
			compareWithOracle(t, s.name, path, false)
		}
	}
}

// Of a last FIN that was not acknowledged in the capture, only the time after it says that it arrived.
func TestTheOwnerOfTimeWaitIsUnknownJustBeforeTheCaptureEnds(t *testing.T) {
	for after, want := range map[int64]bool{2e6: false, 3e6: true} {
		c := flowtest.NewConversation("10.0.0.1:40000", "10.0.0.2:8080", 1000, 2000)
		c.SYN().SYNACK().ACK(client).Hide().FIN(server).ACK(client).Hide().FIN(client).ACK(server).Hide()
		c.Wait(after).Next(9, 9).SYN()
		packets := flowtest.Packets(flowtest.Ethernet, c.Segments)
		path := flowtest.Save(t, flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, 128, packets))
		flows, _ := reduceFile(t, path)
		if flows[0].TimeWaitKnown != want {
			t.Errorf("%d µs later: the owner is known: %v, want %v", after, flows[0].TimeWaitKnown, want)
		}
		compareWithOracle(t, "HandshakesAlone", path, false)
	}
}

// Sequence numbers go round every 4 GiB. The second reducer, which keeps each byte of them, has no room for so many.
func TestALongConnectionIsFollowedAllTheWay(t *testing.T) {
	const sent = "| | 1100 B 9663675416 missing 10 retransmissions 1 out_of_order"
	for _, fromSYN := range []bool{true, false} {
		want := "inferred syn 0 synack 0 established none tw:? truncated_start truncated_end " + sent
		c := flowtest.NewConversation("10.0.0.1:40000", "10.0.0.2:8080", 1000, 2000).Open()
		first := c.Segments[1]
		if fromSYN {
			want = "syn 1 synack 1 established none tw:? truncated_end 1 stray " + sent
		} else {
			c.Segments = nil
		}
		for step := range uint32(10) {
			c.Next(1001, 2001+step<<30) // the capture lacks all between
			c.Data(server, 100).Again(server)
		}
		c.Again(server)
		c.Segments[len(c.Segments)-1].Seq -= 100 // late, and new
		if fromSYN {
			first.TimeNs = c.Wait(1).NowNs
			c.Segments = append(c.Segments, first)
		}
		packets := flowtest.Packets(flowtest.Ethernet, c.Segments)
		path := flowtest.Save(t, flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, 128, packets))
		flows, _ := reduceFile(t, path)
		if got := describe(&flows[0]); len(flows) != 1 || got != want {
			t.Errorf("%d flows\n got %s\nwant %s", len(flows), got, want)
		}
	}
}

func TestEveryFormatAndLinkGivesTheSameFlows(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		segments, descriptions := scripted(ipv6)
		for _, link := range flowtest.Links {
			for _, format := range flowtest.Formats {
				packets := flowtest.Packets(link, segments)
				path := flowtest.Save(t, flowtest.Capture(format, link.Type, 128, packets))
				if t.Failed() {
					return // the others would say the same
				}
				what := fmt.Sprintf("%s %s IPv6 %v", format.Name, link.Name, ipv6)
				flows, summary := reduceFile(t, path)
				if len(flows) != len(descriptions) || summary.Packets != uint64(len(segments)) || summary.Kinds[packet.TCP] != summary.Packets {
					t.Errorf("%s: %d flows of %d packets, want %d of %d", what, len(flows), summary.Packets, len(descriptions), len(segments))
					continue
				}
				for i := range flows {
					if got, want := describe(&flows[i]), strings.Join(strings.Fields(descriptions[i]), " "); got != want {
						t.Errorf("%s: flow %d is %q, want %q", what, i+1, got, want)
					}
					if flows[i].FineClock != format.Nano {
						t.Errorf("%s: flow %d: FineClock is %v", what, i+1, flows[i].FineClock)
					}
				}
			}
		}
	}
}
