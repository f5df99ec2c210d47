package flow

import "connlab/collector/internal/packet"

// marks are what is known of a connection or of one side of it.
type marks uint16

// Marks of a side.
const (
	hasISN marks = 1 << iota
	hasNext
	wentOn // sent more than SYNs and RSTs
	hasACK
	hasData
	hasFIN
	synACKed // the other side acknowledged its SYN
	finACKed // the other side acknowledged its FIN
	hasGaps
	inexact // its sequence numbers do not say what it sent
)

// Marks of a connection.
const (
	synSent          marks = 1 << iota // unanswered: only the client's SYNs, and perhaps a refusal
	midStream                          // it began before the capture: no SYN, no SYN-ACK
	established                        // the handshake is complete
	handshakeSeen                      // handshakeACKNs holds
	simultaneousOpen                   // both sides sent a SYN
	closed                             // both FINs are acknowledged
	aborted                            // a RST came before that
	fineClock                          // some packet's clock ticks finer than a microsecond
)

func (m marks) has(mask marks) bool { return m&mask != 0 }

// side is one end of a connection, and what it sent.
type side struct {
	address packet.Address

	packets                                 uint64
	payloadBytes, uniqueBytes, missingBytes uint64
	firstDataNs, lastDataNs, finNs          int64

	isn    uint32
	base   uint32 // the lowest sequence number of data that is remembered
	next   uint32 // what follows the highest one seen
	ack    uint32 // the highest acknowledgement sent
	finSeq uint32
	finACK uint32 // what the first FIN acknowledged

	retransmissions, outOfOrder, duplicateACKs, rsts uint32

	port   uint16
	window uint16 // in the last segment
	marks  marks
}

func (s *side) is(address packet.Address, port uint16) bool {
	return s.port == port && s.address == address
}

// begin sets where the sequence space of the data begins.
func (s *side) begin(seq uint32) {
	s.base, s.next = seq, seq
	s.marks |= hasNext
}

// setISN notes the initial sequence number.
func (s *side) setISN(isn uint32) {
	if s.marks.has(hasISN) && s.isn == isn {
		return
	}
	s.isn = isn
	s.marks |= hasISN
	if !s.marks.has(wentOn | hasData) {
		s.begin(isn + 1)
	}
}

// acknowledgedBy says whether ack covers the side's SYN and nothing that it has
// not sent.
func (s *side) acknowledgedBy(ack uint32) bool {
	return s.marks.has(hasISN) && !before(ack, s.isn+1) && !before(s.next, ack)
}

// isFar says whether a sequence number is further from those in use than any
// window reaches.
func (s *side) isFar(seq uint32) bool {
	return seq-s.next+windowBytesMax > 2*windowBytesMax
}

// precedesSYN says whether data lies below the side's SYN, of which a keep-alive
// probe may repeat the number with one byte.
func (s *side) precedesSYN(start, payload uint32) bool {
	return s.marks.has(hasISN) && before(start, s.base) && (start+1 != s.base || payload > 1)
}

// finCoveredBy says whether ack covers the side's FIN.
func (s *side) finCoveredBy(ack uint32) bool { return !before(ack, s.finSeq+1) }

// connection is what is kept of a flow while the capture is read. It has no
// pointers, so the garbage collector need not look into millions of them.
type connection struct {
	sides [2]side // by Client and Server

	syn, synACK     timeList
	firstPacket     uint64
	firstNs, lastNs int64
	handshakeACKNs  int64
	firstRSTNs      int64

	former       uint32 // index of the former connection of the four-tuple, plus 1
	strayPackets uint32

	firstFINBy, firstRSTBy, closedBy Side
	closeKind                        CloseKind
	marks                            marks

	tls tlsHandshake
}

// sender returns the side that sent a segment; false if the segment has another
// four-tuple.
func (c *connection) sender(seg *packet.Segment) (Side, bool) {
	client, server := &c.sides[Client], &c.sides[Server]
	switch {
	case client.is(seg.Source, seg.SourcePort) && server.is(seg.Destination, seg.DestinationPort):
		return Client, true
	case server.is(seg.Source, seg.SourcePort) && client.is(seg.Destination, seg.DestinationPort):
		return Server, true
	}
	return Nobody, false
}

// begin makes the connection that a first segment belongs to.
func (c *connection) begin(a *arrival) {
	*c = connection{
		firstPacket: a.number,
		firstNs:     a.timeNs,
		firstFINBy:  Nobody,
		firstRSTBy:  Nobody,
		closedBy:    Nobody,
	}
	source, destination := Client, Server
	switch {
	case a.isSYN() && !a.Flags.Has(packet.ACK):
		c.marks = synSent
	case a.isSYN():
		source, destination = Server, Client
		c.sides[Client].setISN(a.Ack - 1)
	default:
		c.marks = midStream
		if a.SourcePort < a.DestinationPort {
			source, destination = Server, Client
		}
	}
	c.sides[source].address, c.sides[source].port = a.Source, a.SourcePort
	c.sides[destination].address, c.sides[destination].port = a.Destination, a.DestinationPort
}

// count counts a segment.
func (c *connection) count(from Side, a *arrival) {
	c.sides[from].packets++
	c.lastNs = a.timeNs
	if a.fine {
		c.marks |= fineClock
	}
}

// noteEnd notes the first sign of the connection's end.
func (c *connection) noteEnd(by Side, kind CloseKind) {
	if c.closeKind == NotClosed {
		c.closedBy, c.closeKind = by, kind
	}
}

// noteACK takes the acknowledgement of a segment and says whether it completes
// the handshake.
func (c *connection) noteACK(from Side, a *arrival) bool {
	if c.marks.has(established) {
		return false
	}
	peer := &c.sides[1-from]
	isRST := a.Flags.Has(packet.RST)
	switch {
	case c.marks.has(midStream):
		if isRST {
			return false
		}
		c.marks |= established // long ago
		return false
	case peer.marks.has(hasISN):
		if before(a.Ack, peer.isn+1) {
			return false
		}
	case from == Server || a.isSYN() || isRST:
		return false
	default:
		// The client goes on, so it got a SYN-ACK: the capture lacks it, or has it
		// out of order.
	}
	peer.marks |= synACKed
	complete := c.sides[Server].marks.has(synACKed)
	if c.marks.has(simultaneousOpen) {
		complete = complete && c.sides[Client].marks.has(synACKed)
	}
	if complete {
		c.marks |= established
	}
	return complete
}

// isHandshakeACK says whether a segment can be the one that completed the
// handshake, given that it is the first to show it complete. It cannot if
// something is missing before it, as in a capture of SYN, FIN and RST only.
func (c *connection) isHandshakeACK(from Side, a *arrival) bool {
	if a.Flags.Has(packet.RST|packet.FIN) || from == Server && !c.marks.has(simultaneousOpen) {
		return false
	}
	s := &c.sides[from]
	return a.isSYN() || a.Seq == s.isn+1 || a.Seq == s.next
}

// owns says whether the sequence numbers of a SYN or SYN-ACK are the
// connection's own.
func (c *connection) owns(from Side, a *arrival) bool {
	s, peer := &c.sides[from], &c.sides[1-from]
	if s.marks.has(hasISN) && s.isn == a.Seq {
		return true
	}
	return a.Flags.Has(packet.ACK) && from == Server && peer.acknowledgedBy(a.Ack)
}

// contradictedBy says whether a SYN or SYN-ACK gives a side another initial
// sequence number than the one by which it has gone on since, or one that it has
// left far behind.
func (c *connection) contradictedBy(from Side, a *arrival) bool {
	s := &c.sides[from]
	if s.marks.has(hasISN) && s.isn != a.Seq {
		return c.marks.has(established) || s.marks.has(wentOn|hasData)
	}
	return s.marks.has(wentOn) && s.isFar(a.Seq)
}

// answers says whether a segment other than a SYN can be part of a connection
// that has shown only the client's SYN so far. Other segments are late ones of a
// former connection, or answers to these.
func (c *connection) answers(from Side, a *arrival) bool {
	client := &c.sides[Client]
	if from == Server {
		return a.Flags.Has(packet.ACK) && client.acknowledgedBy(a.Ack)
	}
	if a.Flags.Has(packet.RST) {
		// A server that still has the former connection acknowledges that one, and
		// the client resets it, with a sequence number of that one.
		return a.Seq == client.isn+1
	}
	return a.Seq-(client.isn+1) < windowBytesMax
}

// isStrayRST says whether neither end accepts a RST as one of this connection.
// While the client waits for a SYN-ACK it takes each that acknowledges its SYN,
// whatever the sequence number.
func (c *connection) isStrayRST(from Side, a *arrival) bool {
	s, peer := &c.sides[from], &c.sides[1-from]
	answersSYN := a.Flags.Has(packet.ACK) && !c.marks.has(established) && peer.acknowledgedBy(a.Ack)
	return s.marks.has(hasNext) && s.isFar(a.Seq) && !answersSYN
}

// mayHaveSent says whether a segment other than a SYN, which came after another
// connection began, can be a late one of this connection.
func (c *connection) mayHaveSent(from Side, a *arrival) bool {
	s, peer := &c.sides[from], &c.sides[1-from]
	switch {
	case c.marks.has(synSent):
		return c.answers(from, a)
	case s.marks.has(hasNext) && s.isFar(a.Seq),
		s.marks.has(hasFIN) && before(s.finSeq+1, a.Seq+a.Payload),
		a.Flags.Has(packet.ACK) && peer.marks.has(hasNext) && peer.isFar(a.Ack):
		return false
	}
	return true
}

// A host that gets no acknowledgement of its FIN sends it again within this
// time: the retransmission timer begins at 1 s, or at 3 s after a handshake
// that needed more than one SYN (RFC 6298), and is shorter where round trips
// are known.
const finAgainWithinNs = 3e9

// timeWaitOwner returns the side that holds TIME_WAIT after the connection's
// end; false if the capture does not show it. A capture of handshakes has no
// acknowledgement of the last FIN: that FIN arrived if the capture went on, to
// endNs, and it was not sent again.
func (c *connection) timeWaitOwner(endNs int64) (Side, bool) {
	client, server := &c.sides[Client], &c.sides[Server]
	if c.marks.has(aborted) || !c.marks.has(established) {
		return Nobody, true
	}
	if !c.marks.has(closed) {
		last := max(client.finNs, server.finNs)
		if !client.marks.has(hasFIN) || !server.marks.has(hasFIN) || c.lastNs != last || endNs-last < finAgainWithinNs {
			return Nobody, false
		}
	}
	// A side that had received the other's FIN when it sent its own went
	// through CLOSE_WAIT and LAST_ACK and holds nothing. Every other one ends
	// in TIME_WAIT.
	clientHolds := !server.finCoveredBy(client.finACK)
	serverHolds := !client.finCoveredBy(server.finACK)
	switch {
	case clientHolds && serverHolds:
		return Both, true
	case clientHolds:
		return Client, true
	case serverHolds:
		return Server, true
	}
	return Nobody, false // each FIN acknowledges the other: no TCP does that
}
