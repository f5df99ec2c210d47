package flow

import "connlab/collector/internal/packet"

// windowBytesMax is the largest window that TCP can announce (RFC 7323). A
// segment further away than that belongs to no part of the connection.
const windowBytesMax = 1 << 30

// spanMax bounds the sequence numbers that are remembered of a side, from base
// to next. They wrap, and can be compared while they are less than 2^31 apart.
const spanMax = windowBytesMax + windowBytesMax/2

// arrival is a segment and the circumstances of its capture.
type arrival struct {
	packet.Segment
	hash   uint64
	number uint64 // of the packet in the capture
	timeNs int64
	fine   bool // timeNs may be finer than a microsecond
}

// isSYN says whether the segment opens a connection; a RST never does.
func (a *arrival) isSYN() bool {
	return a.Flags&(packet.SYN|packet.RST) == packet.SYN
}

// tracker follows connections, packet by packet.
type tracker struct {
	index index
	store
	times timeArena
	gaps  map[gapsKey]*gaps

	missingBytes uint64 // in all open gaps, forgotten ones too
}

type gapsKey struct {
	connection uint32
	from       Side
}

func newTracker() *tracker {
	t := &tracker{store: store{openMax: openMax}, gaps: make(map[gapsKey]*gaps)}
	t.index.grow()
	return t
}

// add takes the next TCP segment of the capture.
func (t *tracker) add(a *arrival) {
	t.rest()
	mask := uint32(len(t.index.slots) - 1)
	for at := uint32(a.hash) & mask; ; at = (at + 1) & mask {
		s := &t.index.slots[at]
		if s.flow == 0 {
			break
		}
		if s.hash() != a.hash {
			continue
		}
		latest := t.at(s.flow - 1)
		if from, ok := latest.sender(&a.Segment); ok {
			t.take(s, latest, from, a)
			return
		}
	}
	t.index.grow()
	s := &t.index.slots[t.index.free(uint32(a.hash))]
	s.high, s.low = uint32(a.hash>>32), uint32(a.hash)
	t.index.used++
	t.open(s, a)
}

// open begins a connection in the slot of its four-tuple, in place of a former
// one, if there is one.
func (t *tracker) open(s *slot, a *arrival) {
	number := t.store.add()
	c := t.at(number)
	c.begin(a)
	c.former = s.flow
	s.flow = number + 1
	from, _ := c.sender(&a.Segment)
	t.update(number, c, from, a)
}

// take gives a segment to the connection of its four-tuple to which it belongs:
// the latest, a former one, or one that it opens.
func (t *tracker) take(s *slot, latest *connection, from Side, a *arrival) {
	isSYN := a.isSYN()
	unanswered := latest.marks.has(synSent)
	switch {
	case isSYN && latest.owns(from, a),
		isSYN && unanswered && from == Server && !a.Flags.Has(packet.ACK), // a simultaneous open
		!isSYN && !(unanswered && !latest.answers(from, a)):
		t.update(s.flow-1, latest, from, a)
		return
	}
	if latest.former != 0 {
		former := t.at(latest.former - 1)
		from, _ := former.sender(&a.Segment)
		if isSYN && former.owns(from, a) || !isSYN && former.mayHaveSent(from, a) {
			t.update(latest.former-1, former, from, a)
			return
		}
	}
	if !isSYN || unanswered && a.Flags.Has(packet.ACK) {
		latest.count(from, a)
		latest.strayPackets++
		return
	}
	t.open(s, a)
}

// update takes a segment into a connection.
func (t *tracker) update(index uint32, c *connection, from Side, a *arrival) {
	c.count(from, a)
	s := &c.sides[from]
	switch {
	case a.Flags.Has(packet.RST):
		if c.isStrayRST(from, a) {
			c.strayPackets++
			return
		}
		c.reset(from, a)
		return
	case a.isSYN():
		if c.contradictedBy(from, a) {
			c.strayPackets++
			return
		}
		t.synchronise(c, gapsKey{index, from}, a)
	case !s.marks.has(hasNext):
		s.begin(a.Seq)
	case s.isFar(a.Seq):
		// Or the capture lacks so much that this is not far at all.
		c.strayPackets++
		s.marks |= inexact
		return
	}
	if !a.isSYN() {
		s.marks |= wentOn
	}
	if from == Server || !a.isSYN() {
		c.marks &^= synSent
	}
	if a.Flags.Has(packet.ACK) && c.noteACK(from, a) && c.isHandshakeACK(from, a) {
		c.marks |= handshakeSeen
		c.handshakeACKNs = a.timeNs
	}
	start := a.Seq
	if a.isSYN() {
		start++
	}
	if start != s.next || a.Payload != 0 {
		t.space(c, gapsKey{index, from}, start, a)
	}
	if a.Flags.Has(packet.FIN) && !a.isSYN() {
		c.finish(from, start+a.Payload, a)
	}
	if a.Flags.Has(packet.ACK) {
		c.acknowledge(from, a)
	}
}

// reset takes a RST, and ignores its sequence number and data: the data is a
// text that says why, and no part of what the connection carries.
func (c *connection) reset(from Side, a *arrival) {
	c.sides[from].rsts++
	if c.firstRSTBy == Nobody {
		c.firstRSTBy, c.firstRSTNs = from, a.timeNs
	}
	if a.Flags.Has(packet.ACK) {
		c.noteACK(from, a)
	}
	if !c.marks.has(closed) {
		c.marks |= aborted
	}
	c.noteEnd(from, ClosedByRST)
}

// synchronise takes a SYN or SYN-ACK.
func (t *tracker) synchronise(c *connection, key gapsKey, a *arrival) {
	from, withACK := key.from, a.Flags.Has(packet.ACK)
	switch {
	case from == Client && !withACK:
		t.times.add(&c.syn, a.timeNs)
	case from == Server && withACK:
		t.times.add(&c.synACK, a.timeNs)
	default:
		c.marks |= simultaneousOpen
	}
	// A server that forgot a half-open connection answers the next SYN with
	// another initial sequence number.
	s := &c.sides[from]
	s.setISN(a.Seq)
	if s.marks.has(wentOn) && before(s.isn+1, s.base) {
		t.openGap(s, key, s.isn+1, s.base) // data before the first seen
		s.base = s.isn + 1
	}
}

// finish takes a FIN, which stands at finSeq.
func (c *connection) finish(from Side, finSeq uint32, a *arrival) {
	s, peer := &c.sides[from], &c.sides[1-from]
	if s.next == finSeq {
		s.next++ // a FIN takes one number
	}
	if s.marks.has(hasFIN) {
		return
	}
	s.marks |= hasFIN
	s.finSeq, s.finNs, s.finACK = finSeq, a.timeNs, a.Ack
	if peer.marks.has(hasACK) && s.finCoveredBy(peer.ack) {
		s.marks |= finACKed
	}
	if c.firstFINBy == Nobody {
		c.firstFINBy = from
	}
	c.noteEnd(from, ClosedByFIN)
}

// acknowledge takes the acknowledgement number of a segment.
func (c *connection) acknowledge(from Side, a *arrival) {
	s, peer := &c.sides[from], &c.sides[1-from]
	if s.repeatsACK(peer, a) {
		s.duplicateACKs++
	}
	if !s.marks.has(hasACK) || before(s.ack, a.Ack) {
		s.ack = a.Ack
		s.marks |= hasACK
	}
	s.window = a.Window
	if !peer.marks.has(hasFIN) {
		return
	}
	if peer.finCoveredBy(a.Ack) {
		peer.marks |= finACKed
	}
	if s.marks.has(finACKed) && peer.marks.has(finACKed) && !c.marks.has(aborted) {
		c.marks |= closed
	}
}

// repeatsACK says whether a segment is a duplicate acknowledgement as RFC 5681
// defines it.
func (s *side) repeatsACK(peer *side, a *arrival) bool {
	if a.Payload != 0 || a.Flags.Has(packet.SYN|packet.FIN) ||
		!s.marks.has(hasACK) || a.Ack != s.ack || a.Window != s.window {
		return false
	}
	// The other side has sent something that this does not acknowledge.
	return peer.marks.has(hasNext) && before(a.Ack, peer.next)
}

// space takes a segment's place in the sequence space, from start on.
func (t *tracker) space(c *connection, key gapsKey, start uint32, a *arrival) {
	s := &c.sides[key.from]
	if s.next-s.base > spanMax {
		t.forget(s, key)
	}
	if before(s.next, start) {
		t.openGap(s, key, s.next, start)
		s.next = start
	}
	if a.Payload == 0 {
		return
	}
	if !s.marks.has(hasData) {
		s.marks |= hasData
		s.firstDataNs = a.timeNs
	}
	s.lastDataNs = a.timeNs
	s.payloadBytes += uint64(a.Payload)

	end := start + a.Payload
	var below, above uint32 // bytes not seen before, by their place
	if before(start, s.next) {
		if s.precedesSYN(start, a.Payload) {
			// No side sends that, unless its numbers have wrapped around
			// unseen.
			s.marks |= inexact
		}
		below = t.freshBelow(s, key, start, earlier(end, s.next))
	}
	if before(s.next, end) {
		above = end - s.next
		s.next = end
	}
	s.uniqueBytes += uint64(below + above)
	if below > 0 {
		s.outOfOrder++
	}
	if below+above < a.Payload {
		s.retransmissions++
	}
	if below+above > 0 {
		c.tls.follow(key.from, a)
	}
}

// freshBelow returns how many bytes of a range below the highest one seen have
// not been seen before.
func (t *tracker) freshBelow(s *side, key gapsKey, start, end uint32) (fresh uint32) {
	if top := earlier(end, s.base); !s.marks.has(hasISN) && before(start, top) {
		// The capture began later than this.
		if before(top, s.base) {
			t.openGap(s, key, top, s.base)
		}
		s.base = start
		fresh = top - start
	}
	if s.marks.has(hasGaps) {
		open := t.gaps[key]
		filled, exact := open.fill(start, end)
		if !exact {
			s.marks |= inexact
		}
		s.missingBytes -= uint64(filled)
		t.missingBytes -= uint64(filled)
		fresh += filled
		if len(*open) == 0 {
			delete(t.gaps, key)
			s.marks &^= hasGaps
		}
	}
	return fresh
}

// forget moves base up. What lies below is further away than any window reaches:
// what came there would be a stray.
func (t *tracker) forget(s *side, key gapsKey) {
	s.base = s.next - windowBytesMax
	if !s.marks.has(hasGaps) {
		return
	}
	open := t.gaps[key]
	open.forget(s.base)
	if len(*open) == 0 {
		delete(t.gaps, key)
		s.marks &^= hasGaps
	}
}

// openGap notes that a range of the sequence space was passed over.
func (t *tracker) openGap(s *side, key gapsKey, from, to uint32) {
	open := t.gaps[key]
	if open == nil {
		open = new(gaps)
		t.gaps[key] = open
	}
	s.marks |= hasGaps
	s.missingBytes += uint64(to - from)
	t.missingBytes += uint64(to - from)
	if !open.add(from, to) {
		s.marks |= inexact
	}
}
