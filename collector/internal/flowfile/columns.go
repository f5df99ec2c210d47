// Package flowfile writes flows as Parquet and as JSON lines.
package flowfile

import (
	"net/netip"
	"slices"

	"connlab/collector/internal/flow"
)

// Schema names the layout of both files.
const Schema = "connlab.flows/1"

// column is one field of a flow in both files.
type column struct {
	name    string // without a unit at its end
	unit    string // unless get says
	meaning string
	get     any // one of the getters below
}

// The getters; known false stands for null. Each time is a column in
// microseconds, and in the group "fine" one in nanoseconds.
type (
	number       func(*flow.Flow) int64
	maybeNumber  func(*flow.Flow) (value int64, known bool)
	flag         func(*flow.Flow) bool
	address      func(*flow.Flow) netip.Addr
	instant      func(*flow.Flow) (ns int64)
	maybeInstant func(*flow.Flow) (ns int64, known bool)
	instants     func(*flow.Flow) (ns []int64)
	duration     func(*flow.Flow) (ns int64, known bool)
	choice       struct {
		words    []string
		nullable bool
		get      func(*flow.Flow) string // "" for null
	}
)

// columns are all columns in their order. docs/flows.md and
// schemas/flows.schema.json are made from them.
var columns = slices.Concat(
	identity,
	opening,
	securing,
	ofSide("client", "client's", func(f *flow.Flow) *flow.End { return &f.Client }),
	ofSide("server", "server's", func(f *flow.Flow) *flow.End { return &f.Server }),
	closing,
	doubts,
)

var identity = []column{
	{"id", "", "Number of the flow, from 1, in the order of the flows' first packets.",
		number(func(f *flow.Flow) int64 { return int64(f.ID) })},
	{"reused_port_of", "", "`id` of the former flow between the same two addresses and ports; null for the first one.",
		maybeNumber(func(f *flow.Flow) (int64, bool) { return int64(f.ReusedPortOf), f.ReusedPortOf != 0 })},
	{"client_address", "", "Address of the client: the side that sent the first SYN.",
		address(func(f *flow.Flow) netip.Addr { return f.Client.Address.Addr() })},
	{"client_port", "", "Port of the client.",
		number(func(f *flow.Flow) int64 { return int64(f.Client.Address.Port()) })},
	{"server_address", "", "Address of the server.",
		address(func(f *flow.Flow) netip.Addr { return f.Server.Address.Addr() })},
	{"server_port", "", "Port of the server.",
		number(func(f *flow.Flow) int64 { return int64(f.Server.Address.Port()) })},
	{"client_inferred", "", "Neither a SYN nor a SYN-ACK begins the flow, so the side with the lower port was taken for the server; with equal ports the first sender for the client.",
		flag(func(f *flow.Flow) bool { return f.ClientInferred })},
	{"client_isn", "", "Initial sequence number of the client: of its SYN, or one less than the first SYN-ACK acknowledges; null if the capture has neither.",
		maybeNumber(func(f *flow.Flow) (int64, bool) { return int64(f.Client.ISN), f.Client.ISNKnown })},
	{"server_isn", "", "Initial sequence number of the server: of its last SYN-ACK (or SYN) until the flow was established; null if there is none.",
		maybeNumber(func(f *flow.Flow) (int64, bool) { return int64(f.Server.ISN), f.Server.ISNKnown })},
	{"first_packet", "", "Number of the first packet in the capture, from 1, as Wireshark's `frame.number`; counted over all captures if several are read.",
		number(func(f *flow.Flow) int64 { return int64(f.FirstPacket) })},
	{"first_time", "", "Time of the first packet.",
		instant(func(f *flow.Flow) int64 { return f.FirstNs })},
	{"last_time", "", "Time of the last packet.",
		instant(func(f *flow.Flow) int64 { return f.LastNs })},
}

var opening = []column{
	{"syn_count", "packets", "SYNs of the client, retransmissions included.",
		number(func(f *flow.Flow) int64 { return int64(f.SYNs) })},
	{"syn_retransmissions", "packets", "SYNs of the client after the first.",
		number(func(f *flow.Flow) int64 { return int64(max(f.SYNs, 1) - 1) })},
	{"syn_times", "", "Times of the client's SYNs, the first 256 of them.",
		instants(func(f *flow.Flow) []int64 { return f.SYNNs })},
	{"synack_count", "packets", "SYN-ACKs of the server, retransmissions included.",
		number(func(f *flow.Flow) int64 { return int64(f.SYNACKs) })},
	{"synack_times", "", "Times of the server's SYN-ACKs, the first 256 of them.",
		instants(func(f *flow.Flow) []int64 { return f.SYNACKNs })},
	{"answered", "", "The server sent a SYN-ACK.",
		flag(func(f *flow.Flow) bool { return f.SYNACKs > 0 })},
	{"established", "", "The client acknowledged the server's SYN (in a simultaneous open each side the other's). A flow that began before the capture is established if it has more than RSTs.",
		flag(func(f *flow.Flow) bool { return f.Established })},
	{"simultaneous_open", "", "Both sides sent a SYN of their own.",
		flag(func(f *flow.Flow) bool { return f.SimultaneousOpen })},
	{"handshake_ack_time", "", "Time of the segment that completed the handshake; null if the capture lacks it.",
		maybeInstant(func(f *flow.Flow) (int64, bool) { return f.HandshakeACK.Get() })},
	{"handshake", "", "From the client's first SYN to the segment that completed the handshake; null if the capture lacks either.",
		duration((*flow.Flow).HandshakeNs)},
}

var securing = []column{
	{"client_hello_time", "", "Time of the client's first packet that begins with a ClientHello of TLS; null if none is seen.",
		maybeInstant(func(f *flow.Flow) (int64, bool) { return f.ClientHello.Get() })},
	{"server_hello_time", "", "Time of the server's first packet after that which begins with a ServerHello; null if none is seen.",
		maybeInstant(func(f *flow.Flow) (int64, bool) { return f.ServerHello.Get() })},
	{"client_reply_time", "", "Time of the client's packet that answers the ServerHello: with its keys, or with its end of the handshake; null if none is seen.",
		maybeInstant(func(f *flow.Flow) (int64, bool) { return f.ClientReply.Get() })},
	{"tls_end_time", "", "Time of the packet that ended the handshake of TLS: the client's reply by TLS 1.3 and of a resumed session, else the server's answer to it; null if none is seen. TLS 1.3 encrypts a refusal, so this may be one.",
		maybeInstant(func(f *flow.Flow) (int64, bool) { return f.TLSEnd.Get() })},
}

// ofSide returns the columns about what one side sent.
func ofSide(name, whose string, end func(*flow.Flow) *flow.End) []column {
	return []column{
		{name + "_packets", "packets", "The " + whose + " packets.",
			number(func(f *flow.Flow) int64 { return int64(end(f).Packets) })},
		{name + "_payload", "bytes", "Data in the " + whose + " packets, repetitions included.",
			number(func(f *flow.Flow) int64 { return int64(end(f).PayloadBytes) })},
		{name + "_unique", "bytes", "Data in the " + whose + " packets, each byte of the sequence space once.",
			number(func(f *flow.Flow) int64 { return int64(end(f).UniqueBytes) })},
		{name + "_missing", "bytes", "Data that the " + whose + " sequence numbers say was sent, and that the capture does not show.",
			number(func(f *flow.Flow) int64 { return int64(end(f).MissingBytes) })},
		{name + "_retransmissions", "packets", "The " + whose + " packets with data of which the capture had shown a byte before.",
			number(func(f *flow.Flow) int64 { return int64(end(f).Retransmissions) })},
		{name + "_out_of_order", "packets", "The " + whose + " packets with new data below other data that the capture had shown.",
			number(func(f *flow.Flow) int64 { return int64(end(f).OutOfOrder) })},
		{name + "_duplicate_acks", "packets", "The " + whose + " duplicate acknowledgements (RFC 5681).",
			number(func(f *flow.Flow) int64 { return int64(end(f).DuplicateACKs) })},
		{name + "_first_data_time", "", "Time of the " + whose + " first packet with data.",
			maybeInstant(func(f *flow.Flow) (int64, bool) { return end(f).FirstData.Get() })},
		{name + "_last_data_time", "", "Time of the " + whose + " last packet with data.",
			maybeInstant(func(f *flow.Flow) (int64, bool) { return end(f).LastData.Get() })},
		{name + "_fin_time", "", "Time of the " + whose + " first FIN.",
			maybeInstant(func(f *flow.Flow) (int64, bool) { return end(f).FIN.Get() })},
		{name + "_rst_count", "packets", "The " + whose + " RSTs.",
			number(func(f *flow.Flow) int64 { return int64(end(f).RSTs) })},
	}
}

var closing = []column{
	{"first_fin_by", "", "The side whose FIN comes first in the capture.",
		choice{[]string{"client", "server"}, true, func(f *flow.Flow) string { return unlessNobody(f.FirstFINBy) }}},
	{"first_rst_by", "", "The side whose RST comes first in the capture.",
		choice{[]string{"client", "server"}, true, func(f *flow.Flow) string { return unlessNobody(f.FirstRSTBy) }}},
	{"first_rst_time", "", "Time of that RST.",
		maybeInstant(func(f *flow.Flow) (int64, bool) { return f.FirstRST.Get() })},
	{"closed_by", "", "The side that sent the first FIN or RST, whichever comes first in the capture.",
		choice{[]string{"client", "server"}, true, func(f *flow.Flow) string { return unlessNobody(f.ClosedBy) }}},
	{"close_kind", "", "Which of the two that was.",
		choice{[]string{"fin", "rst", "none"}, false, func(f *flow.Flow) string { return f.CloseKind.String() }}},
	{"simultaneous_close", "", "Each side sent its FIN before it had received the other's.",
		flag(func(f *flow.Flow) bool { return f.SimultaneousClose })},
	{"time_wait_owner", "", "The side that holds TIME_WAIT after the end; null if the capture does not show all of the end. A last FIN that was not sent again within 3 s was acknowledged, as a capture of handshakes does not show.",
		choice{[]string{"client", "server", "both", "none"}, true, timeWaitOwner}},
}

var doubts = []column{
	{"truncated_start", "", "The capture has no SYN of the client.",
		flag(func(f *flow.Flow) bool { return f.SYNs == 0 })},
	{"truncated_end", "", "The flow was established, and the capture has neither a RST nor a FIN of each side.",
		flag(func(f *flow.Flow) bool { return f.TruncatedEnd })},
	{"stray_packets", "packets", "Packets that by their sequence numbers can be no part of the connection. They count as packets, and for nothing else but `sequence_exact`.",
		number(func(f *flow.Flow) int64 { return int64(f.StrayPackets) })},
	{"sequence_exact", "", "False if the counts of data may be wrong: too many gaps were open at once, so some had to be forgotten; a stray other than a SYN or RST may have been a packet after data that the capture lacks; or data lies before its side's SYN, so the numbers went round.",
		flag(func(f *flow.Flow) bool { return f.SequenceExact })},
}

func unlessNobody(s flow.Side) string {
	if s == flow.Nobody {
		return ""
	}
	return s.String()
}

func timeWaitOwner(f *flow.Flow) string {
	if !f.TimeWaitKnown {
		return ""
	}
	return f.TimeWaitOwner.String()
}

// isTime says whether the column has a twin in the group "fine".
func (c *column) isTime() bool {
	switch c.get.(type) {
	case instant, maybeInstant, instants, duration:
		return true
	}
	return false
}

// fullName returns a column's name with its unit.
func (c *column) fullName() string {
	switch {
	case c.isTime():
		return c.name + "_us"
	case c.unit == "bytes":
		return c.name + "_bytes"
	}
	return c.name
}

// fineName returns the name of a column's twin in the group "fine".
func (c *column) fineName() string { return c.name + "_ns" }
