package flowfile

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"connlab/collector/internal/excerpt"
	"connlab/collector/internal/flow"
	"connlab/collector/internal/packet"
)

// PacketsSchema names the layout of the packets of chosen connections.
const PacketsSchema = "connlab.packets/1"

// packetColumn is one field of a packet.
type packetColumn struct {
	name    string
	unit    string
	meaning string
	get     any // one of the getters below
}

// The getters; known false stands for null.
type (
	packetNumber      func(*excerpt.Packet) int64
	maybePacketNumber func(*excerpt.Packet) (value int64, known bool)
	packetSide        func(*excerpt.Packet) flow.Side
	packetFlags       func(*excerpt.Packet) packet.Flags
	packetText        func(*excerpt.Packet) string // "" stands for null
)

// packetColumns are all columns in their order. docs/flows.md and
// schemas/packets.schema.json are made from them.
var packetColumns = []packetColumn{
	{"connection", "", "`id` of the chosen connection.",
		packetNumber(func(p *excerpt.Packet) int64 { return p.Connection })},
	{"number", "", "Number of the packet in the capture, from 1, as Wireshark's `frame.number`; counted over all captures if several are read.",
		packetNumber(func(p *excerpt.Packet) int64 { return int64(p.Number) })},
	{"time_us", "µs", "When it was captured, since the Unix epoch.",
		packetNumber(func(p *excerpt.Packet) int64 { return flow.Microseconds(p.TimeNs) })},
	{"time_ns", "ns", "The same; null unless the capture's clock ticks finer than a microsecond.",
		maybePacketNumber(func(p *excerpt.Packet) (int64, bool) { return p.TimeNs, p.FineClock })},
	{"from", "", "The side that sent it.",
		packetSide(func(p *excerpt.Packet) flow.Side { return p.From })},
	{"flags", "", "Its TCP flags.",
		packetFlags(func(p *excerpt.Packet) packet.Flags { return p.Flags })},
	{"seq", "bytes", "Where it begins in what its sender sends: 0 is the SYN, 1 the first byte of data. If the sender's SYN is not among the packets, 1 is the first number seen, in a packet or in its acknowledgement. It does not wrap around.",
		packetNumber(func(p *excerpt.Packet) int64 { return p.Seq })},
	{"ack", "bytes", "What its sender expects next, counted as `seq` of the other side; null without the flag ACK.",
		maybePacketNumber(func(p *excerpt.Packet) (int64, bool) { return p.Ack, p.Flags.Has(packet.ACK) })},
	{"raw_seq", "", "The sequence number in its header.",
		packetNumber(func(p *excerpt.Packet) int64 { return int64(p.RawSeq) })},
	{"raw_ack", "", "The acknowledgement number in its header; null without the flag ACK.",
		maybePacketNumber(func(p *excerpt.Packet) (int64, bool) { return int64(p.RawAck), p.Flags.Has(packet.ACK) })},
	{"payload_bytes", "bytes", "Its data, whether or not the capture kept it.",
		packetNumber(func(p *excerpt.Packet) int64 { return int64(p.PayloadBytes) })},
	{"window", "", "The receive window in its header, without the scale that the handshake agreed on.",
		packetNumber(func(p *excerpt.Packet) int64 { return int64(p.Window) })},
	{"tls", "", "What record of TLS begins its data, such as `ClientHello` or `alert unknown_ca`; null if none is seen. The kind of a record is never encrypted; TLS 1.3 encrypts alerts and all messages after the ServerHello, and calls them data. What a ClientHello asks for is there if the capture kept its data.",
		packetText(func(p *excerpt.Packet) string { return p.TLS })},
	{"cut_bytes", "bytes", "How much of the packet's end the capture did not keep.",
		packetNumber(func(p *excerpt.Packet) int64 { return int64(p.CutBytes) })},
}

// flagNames are the names of the TCP flags, from the lowest bit.
var flagNames = []string{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"}

// packetSummary is the last line.
type packetSummary struct {
	Kind       string       `json:"kind"`
	Complete   bool         `json:"complete"`
	Unreadable []unreadable `json:"unreadable"`
	Packets    uint64       `json:"packets"`
}

// PacketWriter writes packets as JSON lines: a header, the packets, and at the
// end the summary, without which the file is not whole.
type PacketWriter struct {
	buffered *bufio.Writer
	line     []byte
}

// NewPacketWriter returns a writer. It writes nothing before the first packet or
// the end.
func NewPacketWriter(w io.Writer) *PacketWriter {
	return &PacketWriter{bufio.NewWriterSize(w, 1<<16), []byte(`{"kind":"header","schema":"` + PacketsSchema + "\"}\n")}
}

// Write writes a packet.
func (w *PacketWriter) Write(p *excerpt.Packet) error {
	if _, err := w.buffered.Write(w.line); err != nil {
		return err
	}
	w.line = appendPacket(w.line[:0], p)
	return nil
}

// End writes the summary.
func (w *PacketWriter) End(s *flow.Summary) error {
	about, err := json.Marshal(packetSummary{"end", len(s.Damage) == 0, unreadables(s), s.Packets})
	if err != nil {
		return err
	}
	if _, err := w.buffered.Write(append(append(w.line, about...), '\n')); err != nil {
		return err
	}
	return w.buffered.Flush()
}

func appendPacket(line []byte, p *excerpt.Packet) []byte {
	line = append(line, `{"kind":"packet"`...)
	for i := range packetColumns {
		line = append(line, `,"`...)
		line = append(line, packetColumns[i].name...)
		line = append(line, `":`...)
		switch get := packetColumns[i].get.(type) {
		case packetNumber:
			line = strconv.AppendInt(line, get(p), 10)
		case maybePacketNumber:
			v, known := get(p)
			line = appendMaybe(line, v, known)
		case packetSide:
			line = append(line, `"`+get(p).String()+`"`...)
		case packetFlags:
			line = appendFlags(line, get(p))
		case packetText:
			line = appendText(line, get(p))
		}
	}
	return append(line, "}\n"...)
}

// appendText appends a text of printable ASCII.
func appendText(line []byte, text string) []byte {
	if text == "" {
		return append(line, "null"...)
	}
	return strconv.AppendQuote(line, text)
}

func appendFlags(line []byte, flags packet.Flags) []byte {
	separator := ""
	line = append(line, '[')
	for bit, name := range flagNames {
		if flags.Has(1 << bit) {
			line = append(line, separator+`"`+name+`"`...)
			separator = ","
		}
	}
	return append(line, ']')
}
